// A workload that does what its standard input says, a line each, and answers each with a line.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda.h"

static int (*init)(unsigned);
static int (*launch)(int, int, uint64_t, uint32_t);
static int (*launch_at)(int, int, uint64_t, uint64_t, uint32_t, uint32_t);
static void (*unload)(void);
static volatile sig_atomic_t signalled_thread, is_told_to_end;

static long many(int work, long count)
{
    long recorded = 0;
    for (long at = 0; at < count; at++)
        recorded += launch(work, (int)(at % 50), 5000, 7 + (uint32_t)(at % 4));
    return recorded;
}

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// Says how many records came of so many launches, and the processor time of one in ns.
static void timed(long count)
{
    uint64_t begin = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    long recorded = many(KERNEL, count);
    double took = (double)(nanoseconds(CLOCK_THREAD_CPUTIME_ID) - begin);
    printf("timed %ld %.3f\n", recorded, took / (double)count);
}

// Launches so often a second, a part each millisecond, and says how many records came of it, and
// how long it took in ns.
static void pace(long per_second, long milliseconds)
{
    uint64_t begin = nanoseconds(CLOCK_MONOTONIC);
    long recorded = 0, launched = 0;
    for (long at = 1; at <= milliseconds; at++) {
        long due = per_second * at / 1000;
        recorded += many(KERNEL, due - launched);
        launched = due;
        uint64_t next = begin + (uint64_t)at * 1000000;
        struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
            ;
    }
    printf("paced %ld %lu\n", recorded, (unsigned long)(nanoseconds(CLOCK_MONOTONIC) - begin));
}

// Work that begins at a time: kind, name, begin, duration, stream, device.
static int at(const char *line)
{
    int work, name;
    unsigned long start, duration;
    unsigned stream, device;
    if (sscanf(line, "%*s %d %d %lu %lu %u %u", &work, &name, &start, &duration, &stream, &device) != 6)
        return -1;
    return launch_at(work, name, start, duration, stream, device);
}

static void *in_thread(void *count)
{
    return (void *)many(KERNEL, (long)count);
}

static long in_threads(long threads, long count)
{
    pthread_t all[64];
    long recorded = 0;
    for (long at = 0; at < threads; at++)
        pthread_create(&all[at], NULL, in_thread, (void *)count);
    for (long at = 0; at < threads; at++) {
        void *one;
        pthread_join(all[at], &one);
        recorded += (long)one;
    }
    return recorded;
}

// A sum that depends on everything, and on nothing that the tracer does.
static unsigned long work(long count)
{
    unsigned long sum = 17;
    for (long at = 0; at < count; at++) {
        launch((int)(at % 6), (int)(at % 64), 5000, 7);
        sum = sum * 31 + (unsigned long)at;
    }
    return sum;
}

static void note_thread(int signal)
{
    (void)signal;
    signalled_thread = (sig_atomic_t)syscall(SYS_gettid);
}

static void note_end(int signal)
{
    (void)signal;
    is_told_to_end = 1;
}

static void tell_window(uint64_t from, uint64_t to, long records)
{
    printf("window from=%lu to=%lu records=%ld\n", (unsigned long)from, (unsigned long)to, records);
}

// Launches a kernel each 5 ms until SIGTERM, and says ten times a second how many that were and
// whether they are recorded. Of each window it says, once that is over, since when and until when
// in ns since the Unix epoch it was recorded, and how many records that were.
static void steadily(void)
{
    uint64_t next = nanoseconds(CLOCK_MONOTONIC), from = 0, to = 0;
    long launched = 0, records = 0;
    signal(SIGTERM, note_end);
    while (!is_told_to_end) {
        uint64_t before = nanoseconds(CLOCK_REALTIME);
        int recorded = launch(KERNEL, (int)(launched % 50), 5000, 7);
        uint64_t now = nanoseconds(CLOCK_REALTIME);
        launched++;
        if (recorded) {
            from = records ? from : before;
            to = now;
            records += recorded;
        } else if (records) {
            tell_window(from, to, records);
            records = 0;
        }
        if (launched % 20 == 0) {
            int has_none = waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
            printf("pid=%d t=%lu ranges=%ld recording=%d wait=%s\n", getpid(), (unsigned long)now, launched,
                   records > 0, has_none ? "ECHILD" : "child");
        }
        next += 5000000;
        struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    if (records)
        tell_window(from, to, records);
    printf("total ranges=%ld\n", launched);
}

static int child(long count)
{
    pid_t pid = fork();
    if (pid == 0) {
        many(KERNEL, count);
        _exit(3);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int held(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    int (*subscribe)(void **, void *, void *) =
        library ? (int (*)(void **, void *, void *))dlsym(library, "cuptiSubscribe") : NULL;
    void *handle;
    return subscribe ? subscribe(&handle, NULL + 1, NULL) : -1;
}

int main(int count, char **words)
{
    (void)count;
    setvbuf(stdout, NULL, _IOLBF, 0);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return fprintf(stderr, "%s\n", dlerror()), 99;
    init = (int (*)(unsigned))dlsym(driver, "cuInit");
    launch = (int (*)(int, int, uint64_t, uint32_t))dlsym(driver, "fakeCudaLaunch");
    launch_at = (int (*)(int, int, uint64_t, uint64_t, uint32_t, uint32_t))dlsym(driver, "fakeCudaLaunchAt");
    unload = (void (*)(void))dlsym(driver, "fakeCudaUnload");
    char line[512], word[32], path[400];
    while (fgets(line, sizeof line, stdin)) {
        long a = 0, b = 0;
        if (sscanf(line, "%31s %ld %ld", word, &a, &b) < 1)
            continue;
        if (!strcmp(word, "init"))
            printf("init %d\n", init(0));
        else if (!strcmp(word, "launch"))
            printf("recorded %ld\n", many((int)b, a));
        else if (!strcmp(word, "at"))
            printf("recorded %d\n", at(line));
        else if (!strcmp(word, "timed"))
            timed(a);
        else if (!strcmp(word, "pace"))
            pace(a, b);
        else if (!strcmp(word, "pid"))
            printf("pid %d\n", getpid());
        else if (!strcmp(word, "threads"))
            printf("recorded %ld\n", in_threads(a, b));
        // One kernel that runs for so many milliseconds.
        else if (!strcmp(word, "long"))
            printf("recorded %d\n", launch(KERNEL, 0, (uint64_t)a * 1000000, 7));
        else if (!strcmp(word, "name"))
            printf("recorded %d\n", launch(KERNEL, (int)a, 5000, 7));
        else if (!strcmp(word, "work"))
            printf("sum %lu\n", work(a));
        else if (!strcmp(word, "unload"))
            unload(), puts("unloaded");
        else if (!strcmp(word, "fork"))
            printf("child %d\n", child(a));
        else if (!strcmp(word, "setuid"))
            printf("setuid %d\n", setresuid(getuid(), getuid(), getuid()));
        else if (!strcmp(word, "signal")) {
            signal(SIGUSR1, note_thread);
            // The main thread blocks it: whoever else could take it would.
            sigset_t one;
            sigemptyset(&one);
            sigaddset(&one, SIGUSR1);
            pthread_sigmask(SIG_BLOCK, &one, NULL);
            kill(getpid(), SIGUSR1);
            struct timespec pause = {0, 50000000};
            nanosleep(&pause, NULL);
            int before = signalled_thread;
            pthread_sigmask(SIG_UNBLOCK, &one, NULL);
            printf("signal %d %d\n", before, signalled_thread == getpid());
        } else if (!strcmp(word, "load") && sscanf(line, "%*s %399s", path) == 1)
            printf("load %d\n", dlopen(path, RTLD_NOW) != NULL);
        else if (!strcmp(word, "hold") && sscanf(line, "%*s %399s", path) == 1)
            printf("hold %d\n", held(path));
        else if (!strcmp(word, "exec")) {
            puts("exec");
            execv("/proc/self/exe", words);
        } else if (!strcmp(word, "run"))
            for (puts("running");;)
                many(KERNEL, 1000);
        else if (!strcmp(word, "steadily"))
            steadily();
        else if (!strcmp(word, "exit"))
            exit((int)a);
        else if (!strcmp(word, "abort"))
            abort();
        else
            puts("what?");
    }
    return 0;
}
