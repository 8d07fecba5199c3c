// libcupti without a GPU, one release: see README.md.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/prctl.h>

#include "calls.h"
#include "cuda.h"
#include "faults.h"
#include "records.h"

enum { HELD = 39, NO_MORE = 12, INVALID_KIND = 21 };

static const uint32_t API_VERSION = SINCE(1305, 130500) SINCE(1304, 130401) SINCE(1303, 130301) SINCE(1302, 130200)
    SINCE(1301, 130101) SINCE(1300, 130001) SINCE(1209, 28) SINCE(1208, 26) SINCE(1206, 24) 18;

typedef void (*requested_t)(uint8_t **, size_t *, size_t *);
typedef void (*completed_t)(void *, uint32_t, uint8_t *, size_t, size_t);
typedef void (*callback_t)(void *, int, uint32_t, const void *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static requested_t requested;
static completed_t completed;
static callback_t subscriber;
static int sessions;
static uint8_t enabled[K_LAST];
static uint8_t *buffer;
static size_t capacity, length, dropped;
// When the last work in the buffer ends: until then its record is not complete.
static uint64_t ends_ns;
static uint64_t records;
static uint32_t correlation;

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

#define PUT(type, at, value) (*(type *)(record + (at)) = (type)(value))

// Buffers that are full and not given back yet, the oldest first.
static struct full {
    uint8_t *buffer;
    size_t capacity, length;
} hoard[1024];
static int hoarded;
static pthread_cond_t is_full = PTHREAD_COND_INITIALIZER, is_done = PTHREAD_COND_INITIALIZER;
static int has_worker, is_working;

// The thread that hands over full buffers, as libcupti has one.
static void *hand_over(void *nothing)
{
    prctl(PR_SET_NAME, "fake-cupti");
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!hoarded)
            pthread_cond_wait(&is_full, &lock);
        struct full next = hoard[0];
        memmove(hoard, hoard + 1, (size_t)--hoarded * sizeof *hoard);
        is_working = 1;
        pthread_mutex_unlock(&lock);
        completed(NULL, 0, next.buffer, next.capacity, next.length);
        pthread_mutex_lock(&lock);
        is_working = 0;
        pthread_cond_broadcast(&is_done);
    }
    return nothing;
}

static void begin_worker(void)
{
    pthread_t thread;
    if (!has_worker && fault("worker") && !pthread_create(&thread, NULL, hand_over, NULL)) {
        pthread_detach(thread);
        has_worker = 1;
    }
}

static void deliver(void)
{
    if (buffer && completed && (fault("hoard") || has_worker) && hoarded < 1024) {
        hoard[hoarded++] = (struct full){buffer, capacity, length};
        pthread_cond_signal(&is_full);
    } else if (buffer && completed) {
        completed(NULL, 0, buffer, capacity, length);
    }
    buffer = NULL;
    length = 0;
    ends_ns = 0;
}

// What a flush that is not forced gives back: no buffer with a record that is not complete.
static void deliver_all(void)
{
    if (now_ns() >= ends_ns)
        deliver();
    while (has_worker && (hoarded || is_working))
        pthread_cond_wait(&is_done, &lock);
    for (int at = 0; at < hoarded; at++)
        completed(NULL, 0, hoard[at].buffer, hoard[at].capacity, hoard[at].length);
    hoarded = 0;
}

// Room for a record of a kind; null where it is dropped.
static uint8_t *room(uint32_t kind, size_t bytes)
{
    if (fault("drop") && ++records % (uint64_t)fault("drop") == 0) {
        dropped++;
        return NULL;
    }
    if (buffer && length + bytes > capacity)
        deliver();
    if (!buffer) {
        size_t most = 0;
        if (requested)
            requested(&buffer, &capacity, &most);
        // As libcupti does before API 27.
        if (!buffer)
            abort();
        length = 0;
        ends_ns = 0;
    }
    uint8_t *record = buffer + length;
    length += bytes;
    memset(record, 0, bytes);
    PUT(uint32_t, 0, kind);
    return record;
}

static int is_on(int kind)
{
    return __atomic_load_n(&enabled[kind], __ATOMIC_ACQUIRE);
}

static int is_any_on(void)
{
    for (int kind = 0; kind < K_LAST; kind++)
        if (is_on(kind))
            return 1;
    return 0;
}

static int put_call(int kind, uint32_t function, uint64_t start, uint64_t duration)
{
    // Asked once for each thread; a child of fork has its parent's, and records nothing.
    static __thread uint32_t process, thread;
    uint8_t *record = is_on(kind) ? room((uint32_t)kind, 40) : NULL;
    if (!record)
        return 0;
    if (!thread) {
        process = (uint32_t)getpid();
        thread = (uint32_t)syscall(SYS_gettid);
    }
    PUT(uint32_t, 4, function);
    PUT(uint64_t, 8, start);
    PUT(uint64_t, 16, start + duration);
    PUT(uint32_t, 24, process);
    PUT(uint32_t, 28, thread);
    PUT(uint32_t, 32, correlation);
    return 1;
}

static int put_calls(const struct launch *launch, uint64_t start)
{
    if (launch->function)
        return put_call(K_RUNTIME, launch->function, start, launch->call_ns);
    return put_call(K_RUNTIME, LAUNCH_KERNEL, start, CALL_NS) + put_call(K_DRIVER, CU_LAUNCH_KERNEL, start, CALL_NS);
}

// Each device has one context.
static uint32_t context_of(const struct launch *launch)
{
    return launch->device + 1;
}

static int put_kernel(const struct launch *launch, uint64_t start, uint64_t node)
{
    static uint64_t kernels;
    if (fault("unknown"))
        room(58, 48);
    uint8_t *record = room(K_KERNEL, KERNEL_BYTES);
    if (!record)
        return 0;
    kernels++;
    uint64_t end = start + launch->duration_ns;
    if (fault("disorder"))
        start -= kernels * 1000, end -= kernels * 1000;
    if (fault("backwards") && kernels % (uint64_t)fault("backwards") == 0)
        end = start - 1;
    if (fault("zero_times") && kernels % (uint64_t)fault("zero_times") == 0)
        start = end = 0;
    PUT(uint16_t, 6, 40);
    PUT(uint64_t, 16, start);
    PUT(uint64_t, 24, end);
    PUT(uint32_t, 40, launch->device);
    PUT(uint32_t, 44, context_of(launch));
    PUT(uint32_t, 48, launch->stream);
    PUT(uint32_t, 52, launch->blocks ? launch->blocks : 108);
    PUT(uint32_t, 56, 1);
    PUT(uint32_t, 60, 1);
    PUT(uint32_t, 64, 256);
    PUT(uint32_t, 68, 1);
    PUT(uint32_t, 72, 1);
    PUT(uint32_t, 92, correlation);
    PUT(const char *, 104, launch->name);
    PUT(uint64_t, 144, node);
    PUT(uint32_t, 156, node ? 5 : 0);
    return 1;
}

static int put_copy(const struct launch *launch, uint64_t start)
{
    int peer = launch->work == PEER;
    uint8_t *record = peer ? room(K_PEER, 96) : room(K_COPY, COPY_BYTES);
    if (!record)
        return 0;
    int to_host = launch->source == DEVICE_MEMORY;
    PUT(uint8_t, 4, peer ? 10 : to_host ? 2 : 1);
    PUT(uint8_t, 5, launch->source);
    PUT(uint8_t, 6, launch->destination);
    PUT(uint64_t, 8, launch->bytes ? launch->bytes : 4096);
    PUT(uint64_t, 16, start);
    PUT(uint64_t, 24, start + launch->duration_ns);
    PUT(uint32_t, 32, launch->device);
    PUT(uint32_t, 36, context_of(launch));
    PUT(uint32_t, 40, launch->stream);
    PUT(uint32_t, peer ? 60 : 44, correlation);
    if (peer)
        PUT(uint32_t, 52, 1);
    return 1;
}

static int put_set(const struct launch *launch, uint64_t start)
{
    uint8_t *record = room(K_SET, SET_BYTES);
    if (!record)
        return 0;
    PUT(uint64_t, 8, 8192);
    PUT(uint64_t, 16, start);
    PUT(uint64_t, 24, start + launch->duration_ns);
    PUT(uint32_t, 32, launch->device);
    PUT(uint32_t, 36, context_of(launch));
    PUT(uint32_t, 40, launch->stream);
    PUT(uint32_t, 44, correlation);
    return 1;
}

static int put_wait(const struct launch *launch, uint64_t start)
{
    uint8_t *record = room(K_WAIT, WAIT_BYTES);
    if (!record)
        return 0;
    PUT(uint32_t, 4, 3);
    PUT(uint64_t, 8, start);
    PUT(uint64_t, 16, start + launch->duration_ns);
    PUT(uint32_t, 24, correlation);
    PUT(uint32_t, 28, context_of(launch));
    PUT(uint32_t, 32, launch->stream);
    return 1;
}

static int put_graph(const struct launch *launch, uint64_t start)
{
    uint8_t *record = room(K_GRAPH, GRAPH_BYTES);
    if (!record)
        return 0;
    PUT(uint32_t, 4, correlation);
    PUT(uint64_t, 8, start);
    PUT(uint64_t, 16, start + 3 * launch->duration_ns);
    PUT(uint32_t, 24, launch->device);
    PUT(uint32_t, 28, 5);
    PUT(uint32_t, 32, context_of(launch));
    PUT(uint32_t, 36, launch->stream);
    return 1;
}

// What the driver tells of a launch. Gives how many records came of it.
static int on_launch(const struct launch *launch)
{
    static int has_ended;
    if (fault("poison") && __atomic_load_n(&sessions, __ATOMIC_RELAXED) > 1)
        has_ended = 1;
    if (has_ended)
        return 0;
    pthread_mutex_lock(&lock);
    correlation++;
    uint64_t call = launch->call_start_ns;
    if (!call)
        call = launch->start_ns ? launch->start_ns - 3000 : now_ns();
    uint64_t start = launch->start_ns ? launch->start_ns : call + 3000;
    int count = put_calls(launch, call);
    int calls = count;
    switch (launch->work) {
    case KERNEL:
        count += is_on(K_KERNEL) ? put_kernel(launch, start, 0) : 0;
        break;
    case COPY:
    case PEER:
        count += is_on(K_COPY) ? put_copy(launch, start) : 0;
        break;
    case SET:
        count += is_on(K_SET) ? put_set(launch, start) : 0;
        break;
    case WAIT:
        count += is_on(K_WAIT) ? put_wait(launch, start) : 0;
        break;
    case GRAPH:
        if (is_on(K_GRAPH))
            count += put_graph(launch, start);
        else if (is_on(K_KERNEL))
            for (uint64_t node = 1; node <= 3; node++)
                count += put_kernel(launch, start + node * launch->duration_ns, node);
        break;
    }
    uint64_t nodes = launch->work == GRAPH ? 4 : 1;
    uint64_t end = start + nodes * launch->duration_ns;
    // Work whose time was told is not of now, unless its call is.
    int is_of_now = !launch->start_ns || launch->call_start_ns;
    if (buffer && count > calls && is_of_now && end > ends_ns)
        ends_ns = end;
    pthread_mutex_unlock(&lock);
    return count;
}

static void put_places(int kind)
{
    pthread_mutex_lock(&lock);
    uint8_t *record = NULL;
    switch (kind) {
    case K_DEVICE:
        for (uint32_t device = 0; device < 2 && (record = room(K_DEVICE, DEVICE_BYTES)); device++) {
            PUT(uint64_t, 16, 85899345920);
            PUT(uint32_t, 44, 132);
            PUT(uint32_t, 104, 9);
            PUT(uint32_t, 112, device);
            PUT(uint8_t, 120, 7 + device);
            PUT(const char *, 136, "Simulated GPU");
            PUT(uint8_t, 144, 1);
        }
        break;
    case K_CONTEXT:
        record = room(K_CONTEXT, CONTEXT_BYTES);
        if (record) {
            PUT(uint32_t, 4, 1);
            PUT(uint16_t, 14, 7);
        }
        break;
    case K_STREAM:
        record = room(K_STREAM, 24);
        if (record) {
            PUT(uint32_t, 4, 1);
            PUT(uint32_t, 8, 7);
        }
        break;
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static int recurse(volatile int depth)
{
    return recurse(depth + 1) + depth;
}

// What every call does first.
static int begin(const char *name, long number)
{
    log_call(name, number);
    if (fault("recurse") || RELEASE == 1302)
        return recurse(0);
    return 0;
}

int cuptiGetVersion(uint32_t *version)
{
    begin("version", 0);
    take_ms("version_ms");
    *version = API_VERSION;
    return (int)fault("version");
}

int cuptiGetTimestamp(uint64_t *time)
{
    begin("timestamp", 0);
    *time = now_ns();
    return 0;
}

int cuptiSubscribe(void **handle, callback_t callback, void *data)
{
    (void)data;
    begin("subscribe", 0);
    take_ms("subscribe_ms");
    if (fault("subscribe"))
        return (int)fault("subscribe");
    if (subscriber)
        return HELD;
    subscriber = callback;
    __atomic_add_fetch(&sessions, 1, __ATOMIC_RELAXED);
    *handle = &subscriber;
    return 0;
}

int cuptiUnsubscribe(void *handle)
{
    begin("unsubscribe", 0);
    if (handle != &subscriber || !subscriber)
        return 1;
    callback_t last = subscriber;
    subscriber = NULL;
    if (fault("late_callback"))
        last(NULL, 2, 211, NULL);
    return 0;
}

int cuptiActivityRegisterCallbacks(requested_t new_requested, completed_t new_completed)
{
    begin("register", 0);
    pthread_mutex_lock(&lock);
    requested = new_requested;
    completed = new_completed;
    begin_worker();
    pthread_mutex_unlock(&lock);
    return (int)fault("register");
}

int cuptiActivitySetAttribute(int attribute, size_t *size, void *value)
{
    begin("attribute", attribute);
    if (*size == sizeof(size_t))
        log_call("attribute_value", (long)*(size_t *)value);
    return (int)fault("attribute");
}

int cuptiActivityEnable(int kind)
{
    begin("enable", kind);
    take_ms("enable_ms");
    if (fault("enable"))
        return (int)fault("enable");
    if (kind < 0 || kind >= K_LAST)
        return INVALID_KIND;
    __atomic_store_n(&enabled[kind], 1, __ATOMIC_RELEASE);
    put_places(kind);
    return 0;
}

int cuptiActivityDisable(int kind)
{
    begin("disable", kind);
    take_ms("disable_ms");
    if (kind < 0 || kind >= K_LAST)
        return INVALID_KIND;
    __atomic_store_n(&enabled[kind], 0, __ATOMIC_RELEASE);
    return (int)fault("disable");
}

int cuptiActivityFlushAll(uint32_t flags)
{
    static uint8_t of_nobody[64];
    begin("flush", flags);
    // A forced flush of buffers that the GPU writes to: never by the tracer.
    if (flags)
        abort();
    take_ms("flush_ms");
    if (fault("flush"))
        return (int)fault("flush");
    if (fault("foreign") && completed)
        completed(NULL, 0, of_nobody, sizeof of_nobody, 0);
    pthread_mutex_lock(&lock);
    if (!fault("keep") && !(fault("hoard") && is_any_on()))
        deliver_all();
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *from, size_t valid, uint8_t **record)
{
    static __thread long steps;
    uint8_t *next = *record ? *record + bytes_of(*(uint32_t *)*record) : from;
    steps = *record ? steps + 1 : 1;
    if (fault("malformed") && steps == fault("malformed"))
        return 1;
    if (next + 8 > from + valid)
        return NO_MORE;
    *record = next;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    (void)context, (void)stream;
    begin("dropped", 0);
    pthread_mutex_lock(&lock);
    *count = dropped;
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiGetCallbackName(int domain, uint32_t function, const char **name)
{
    begin("callback_name", function);
    *name = name_of_call(domain, function);
    return 0;
}

int cuptiFinalize(void)
{
    log_call("finalize", 0);
    abort();
}

// What tells a release from the ones before it.
#if RELEASE >= 1208
int cuptiActivityEnableHWTrace(uint8_t on)
{
    log_call("hw_trace", on);
    abort();
}
#endif
#if RELEASE >= 1300
int cuptiSubscribe_v2(void)
{
    log_call("subscribe_v2", 0);
    abort();
}
#endif
#if RELEASE >= 1302
int cuptiActivityGetStructSize(void)
{
    log_call("struct_size", 0);
    abort();
}
#endif
#if RELEASE >= 1303
int cuptiActivityGetNextRecord_v2(void)
{
    log_call("next_record_v2", 0);
    abort();
}
#endif
#if RELEASE >= 1304
int cuptiGetCudaEventId(void)
{
    log_call("event_id", 0);
    abort();
}
#endif

// It finds the driver that the program has, as libcupti does.
__attribute__((constructor)) static void attach(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void (*attach_to)(launch_hook) = driver ? (void (*)(launch_hook))dlsym(driver, "fakeCudaAttach") : NULL;
    log_call("loaded", RELEASE);
    if (attach_to)
        attach_to(on_launch);
}
