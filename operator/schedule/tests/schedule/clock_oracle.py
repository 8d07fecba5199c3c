"""An oracle for times of the clock: random cases with what they must give, as JSON.

It knows of time zones what Python's zoneinfo does and goes through all minutes one by one. Where croniter is installed, it must
agree with it wherever no clock changes; around changes the two differ by design (croniter takes a repeated time of day twice).
"""
import json
import random
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

UTC = timezone.utc
ZONES = ["Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca",
         "America/St_Johns", "Pacific/Chatham", "Asia/Beirut", "America/Santiago", "Etc/UTC", "Asia/Tehran", "Pacific/Auckland"]
BOUNDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
SLOTS = 200


def field(text, low, high):
    values = set()
    for part in text.split(","):
        part, _, step = part.partition("/")
        first, _, last = part.partition("-")
        if part == "*":
            first, last = low, high
        values.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return values


class Clock:
    def __init__(self, expression, zone):
        self.texts = expression.split()
        self.zone = ZoneInfo(zone)
        self.minute, self.hour, self.day, self.month, self.weekday = (
            field(text, *bounds) for text, bounds in zip(self.texts, BOUNDS))
        self.fixed = self.texts[0].isdigit() and self.texts[1].isdigit()

    def on(self, date):
        day = date.day in self.day
        weekday = date.isoweekday() % 7 in self.weekday or (date.isoweekday() == 7 and 7 in self.weekday)
        both = self.texts[2] != "*" and self.texts[4] != "*"
        return date.month in self.month and ((day or weekday) if both else (day and weekday))

    def between(self, start, end):
        """Instants from start (included) to end (not), in seconds."""
        return sorted(set(self.fixed_times(start, end) if self.fixed else self.minutes(start, end)))

    def minutes(self, start, end):
        at = -(-start // 60) * 60
        while at < end:
            local = datetime.fromtimestamp(at, self.zone)
            if local.minute in self.minute and local.hour in self.hour and self.on(local):
                yield at
            at += 60

    def fixed_times(self, start, end):
        date = datetime.fromtimestamp(start, self.zone).date() - timedelta(days=2)
        last = datetime.fromtimestamp(end, self.zone).date() + timedelta(days=2)
        while date <= last:
            if self.on(date):
                local = datetime(date.year, date.month, date.day, min(self.hour), min(self.minute), tzinfo=self.zone)
                at = int(local.timestamp())  # fold=0: the first of two
                if datetime.fromtimestamp(at, self.zone).replace(tzinfo=None) != local.replace(tzinfo=None):
                    at = self.after_gap(at)
                if start <= at < end:
                    yield at
            date += timedelta(days=1)

    def after_gap(self, near):
        offset = lambda at: datetime.fromtimestamp(at, self.zone).utcoffset()
        at = near - 3 * 3600
        while offset(at) == offset(at - 60):
            at += 60
        return at

    def changes(self, start, end):
        offsets = {datetime.fromtimestamp(at, self.zone).utcoffset() for at in range(start - 90000, end + 90000, 1800)}
        return len(offsets) > 1


def changes_of(zone, year):
    zone = ZoneInfo(zone)
    at = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    offset = lambda at: datetime.fromtimestamp(at, zone).utcoffset()
    return [hour for hour in range(at, at + 366 * 86400, 3600) if offset(hour) != offset(hour + 3600)]


def expression(draw, coarse):
    minute = draw.choice(["0", "30", "59", str(draw.randrange(60)), "*/20", "0,45", "10-50/10"])
    hour = draw.choice(["0", "1", "2", "3", "2", "*", "*/2", "1-3", "0,2,12", str(draw.randrange(24))])
    day = draw.choice(["*", "*", "*", "1,15", "20-31", str(draw.randrange(1, 29))])
    month = draw.choice(["*", "*", "*", "*", "3,4,9-11"])
    weekday = draw.choice(["*", "*", "*", "0", "7", "1-5", "6,0"])
    if coarse:
        minute, hour = draw.choice(["0", "30"]), draw.choice(["8", "2", "22", "1-3"])
    return " ".join([minute, hour, day, month, weekday])


def case(draw):
    zone = draw.choice(ZONES)
    year = draw.randrange(2012, 2026)
    near = changes_of(zone, year)
    if near and draw.random() < 0.75:
        start = draw.choice(near) - draw.randrange(0, 2 * 86400)
    else:
        start = int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) + draw.randrange(365 * 86400)
    clock = Clock(text := expression(draw, False), zone)
    blackouts = []
    for _ in range(draw.randrange(3)):
        blackouts.append({"cron": expression(draw, True), "timeZone": draw.choice([zone, draw.choice(ZONES)]),
                          "durationSeconds": draw.choice([60, 3600, 7200, 30000])})
    window = draw.choice([10, 60, 300])
    count = draw.randrange(5, 40)
    end = start + 40 * 86400
    slots = []
    while len(slots) < count + 1 and end < start + 1200 * 86400:
        slots = clock.between(start + 1, end)
        end += 80 * 86400
    slots = slots[:SLOTS]
    spans = []
    for blackout in blackouts:
        dark = Clock(blackout["cron"], blackout["timeZone"])
        length = blackout["durationSeconds"]
        spans += [(at, at + length) for at in dark.between(start - 2 * length - 86400, slots[-1] + window + 1)]
    lit = [at for at in slots if not any(begin < at + window and finish > at for begin, finish in spans)]
    agree(text, clock, start, slots)
    return {"expression": text, "timeZone": zone, "start": start, "blackouts": blackouts, "durationSeconds": window,
            "slots": len(slots), "lit": lit[:count], "count": count}


def agree(text, clock, start, slots):
    try:
        from croniter import croniter
    except ImportError:
        return
    if clock.changes(start, slots[-1]):
        return
    times = croniter(text, datetime.fromtimestamp(start, clock.zone))
    other = [int(times.get_next(datetime).timestamp()) for _ in slots]
    if other != slots:
        sys.exit(f"croniter says otherwise of {text} in {clock.zone} from {start}: {other[:3]} {slots[:3]}")


draw = random.Random(18)
print(json.dumps([case(draw) for _ in range(int(sys.argv[1]))]))
