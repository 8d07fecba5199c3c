// See bare.h. The places of a record's kind and times are the same in every release.
#include "bare.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL = 3, CONCURRENT_KERNEL = 10, BUFFER_BYTES = 1 << 20 };

static int (*next_record)(uint8_t *, size_t, uint8_t **);
static long kernels, timed;

static void requested(uint8_t **buffer, size_t *bytes, size_t *records)
{
    // Never given back: CUPTI may write to it long after.
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *records = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t filled)
{
    (void)context, (void)stream, (void)bytes;
    for (uint8_t *record = NULL; next_record(buffer, filled, &record) == 0;) {
        uint32_t kind;
        uint64_t times[2];
        memcpy(&kind, record, sizeof kind);
        memcpy(times, record + 16, sizeof times);
        if (kind == KERNEL || kind == CONCURRENT_KERNEL) {
            __atomic_add_fetch(&kernels, 1, __ATOMIC_RELAXED);
            if (times[0] && times[0] <= times[1])
                __atomic_add_fetch(&timed, 1, __ATOMIC_RELAXED);
        }
    }
}

static void ignore(void *data, int domain, uint32_t function, const void *call)
{
    (void)data, (void)domain, (void)function, (void)call;
}

void bare(const char *path, long launches, void (*launch)(long))
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("failed dlopen %s\n", dlerror());
        return;
    }
    int (*version)(uint32_t *) = (int (*)(uint32_t *))dlsym(library, "cuptiGetVersion");
    int (*subscribe)(void **, void (*)(void *, int, uint32_t, const void *), void *) =
        (int (*)(void **, void (*)(void *, int, uint32_t, const void *), void *))dlsym(library, "cuptiSubscribe");
    int (*unsubscribe)(void *) = (int (*)(void *))dlsym(library, "cuptiUnsubscribe");
    int (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t)) =
        (int (*)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t)))dlsym(
            library, "cuptiActivityRegisterCallbacks");
    int (*enable)(int) = (int (*)(int))dlsym(library, "cuptiActivityEnable");
    int (*disable)(int) = (int (*)(int))dlsym(library, "cuptiActivityDisable");
    int (*flush)(uint32_t) = (int (*)(uint32_t))dlsym(library, "cuptiActivityFlushAll");
    next_record = (int (*)(uint8_t *, size_t, uint8_t **))dlsym(library, "cuptiActivityGetNextRecord");
    if (!version || !subscribe || !unsubscribe || !callbacks || !enable || !disable || !flush || !next_record) {
        puts("failed dlsym a function is missing");
        return;
    }
    uint32_t said = 0;
    void *subscriber = NULL;
    int answers[7] = {version(&said), subscribe(&subscriber, ignore, NULL), callbacks(requested, completed),
                      enable(CONCURRENT_KERNEL)};
    launch(launches);
    answers[4] = flush(0);
    answers[5] = disable(CONCURRENT_KERNEL);
    answers[6] = subscriber ? unsubscribe(subscriber) : 0;
    printf("bare %u %ld %ld", said, kernels, timed);
    for (int at = 0; at < 7; at++)
        printf(" %d", answers[at]);
    puts("");
}
