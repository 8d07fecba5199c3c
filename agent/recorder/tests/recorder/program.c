/* A program with NVTX, which counts its own ranges: what it is to do is its first word. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

static long number(char **words, int at) { return words[at] ? atol(words[at]) : 0; }

static nvtxEventAttributes_t attributes(void) {
    nvtxEventAttributes_t event;
    memset(&event, 0, sizeof event);
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    return event;
}

static nvtxEventAttributes_t named(const char *text) {
    nvtxEventAttributes_t event = attributes();
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = text;
    return event;
}

/* Each function once, in a way that tells it from the others. */
static void every(void) {
    nvtxInitialize(NULL);
    nvtxNameOsThreadA((uint32_t)gettid(), "first name");
    nvtxNameOsThreadW((uint32_t)gettid(), L"größter thread");
    nvtxNameCategoryA(7, "loading");
    nvtxNameCategoryW(8, L"wide category");
    nvtxMarkA("mark a");
    nvtxMarkW(L"mark w");
    nvtxEventAttributes_t event = named("mark ex");
    nvtxMarkEx(&event);

    nvtxRangePushA("push a");
    nvtxRangePushW(L"püsh w");
    event = named("push ex");
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff112233;
    event.category = 7;
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = -5;
    nvtxRangePushEx(&event);
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePop();

    nvtxRangeId_t a = nvtxRangeStartA("start a");
    nvtxRangeId_t w = nvtxRangeStartW(L"start w");
    event = named("start ex");
    nvtxRangeId_t ex = nvtxRangeStartEx(&event);
    nvtxRangeEnd(a);
    nvtxRangeEnd(w);
    nvtxRangeEnd(ex);

    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxDomainHandle_t wide = nvtxDomainCreateW(L"weit");
    nvtxDomainNameCategoryA(domain, 7, "domain's");
    nvtxDomainNameCategoryW(domain, 9, L"domain's wide");
    nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered");
    nvtxStringHandle_t text_wide = nvtxDomainRegisterStringW(domain, L"registriert");
    event = attributes();
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = text;
    event.category = 7;
    nvtxDomainRangePushEx(domain, &event);
    event.message.registered = text_wide;
    event.category = 9;
    nvtxDomainMarkEx(domain, &event);
    nvtxDomainRangePushEx(domain, &event);
    event = attributes();
    event.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    event.message.unicode = L"wïde";
    nvtxDomainRangePushEx(wide, &event);
    /* Each domain has a stack of its own. */
    nvtxDomainRangePop(domain);
    nvtxDomainRangePop(domain);
    nvtxDomainRangePop(wide);
    event = named("domain start");
    nvtxRangeId_t started = nvtxDomainRangeStartEx(domain, &event);
    nvtxDomainRangeEnd(domain, started);
    nvtxResourceAttributes_t resource;
    memset(&resource, 0, sizeof resource);
    resource.version = NVTX_VERSION;
    resource.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
    resource.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
    resource.identifier.pValue = &resource;
    nvtxResourceHandle_t made = nvtxDomainResourceCreate(domain, &resource);
    nvtxDomainResourceDestroy(made);
    nvtxDomainDestroy(domain);
    nvtxDomainDestroy(wide);
    printf("ranges 10\n");
}

static void push_and_pop(long ranges) {
    for (long at = 0; at < ranges; at++) {
        nvtxRangePushA("outer");
        nvtxRangePushA("inner");
        nvtxRangePop();
        nvtxRangePop();
    }
}

static void *thread(void *ranges) {
    push_and_pop((long)(intptr_t)ranges);
    return NULL;
}

static void threads(long count, long ranges) {
    pthread_t *all = calloc((size_t)count, sizeof *all);
    for (long at = 0; at < count; at++)
        pthread_create(&all[at], NULL, thread, (void *)(intptr_t)ranges);
    for (long at = 0; at < count; at++)
        pthread_join(all[at], NULL);
    printf("ranges %ld\n", 2 * count * ranges);
}

/* Threads that come and go, a few at a time. */
static void storm(long count) {
    for (long at = 0; at < count; at += 8) {
        pthread_t few[8];
        for (int one = 0; one < 8; one++)
            pthread_create(&few[one], NULL, thread, (void *)1);
        for (int one = 0; one < 8; one++)
            pthread_join(few[one], NULL);
    }
    printf("ranges %ld\n", 2 * count);
}

static void children(long count) {
    nvtxRangePushA("parent");
    for (long at = 0; at < count; at++) {
        pid_t child = fork();
        if (child == 0) {
            nvtxRangePushA("child");
            nvtxRangePop();
            _exit(0);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
            printf("a child failed\n");
            exit(1);
        }
    }
    nvtxRangePop();
    printf("ranges %ld\n", count + 1);
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Ranges until it is killed; after each it says between which times that was, in ns since the epoch, in a file that outlives it. */
static void until_killed(const char *path, long pause) {
    FILE *file = fopen(path, "w");
    setvbuf(file, NULL, _IONBF, 0);
    for (;;) {
        long long before = now();
        nvtxRangePushA("step");
        nvtxRangePop();
        fprintf(file, "%lld %lld\n", before, now());
        if (pause)
            usleep((useconds_t)pause);
    }
}

static void names(long count) {
    char text[200];
    for (long at = 0; at < count; at++) {
        snprintf(text, sizeof text, "step number %ld of many", at);
        nvtxRangePushA(text);
        nvtxRangePop();
        text[0] = 0;
    }
    printf("ranges %ld\n", count);
}

/* Names that end with a page, behind which nobody may read. */
static void page_end(void) {
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + page, (size_t)page, PROT_NONE);
    memset(pages, 'y', (size_t)page);
    pages[page - 1] = 0;
    for (int length = 0; length < 40; length++) {
        nvtxRangePushA(pages + page - 1 - length);
        nvtxRangePop();
    }
    printf("ranges 40\n");
}

static void cross_thread(void) {
    nvtxRangeId_t id = nvtxRangeStartA("across");
    pthread_t other;
    void *end(void *given) { nvtxRangeEnd(*(nvtxRangeId_t *)given); return NULL; }
    pthread_create(&other, NULL, end, &id);
    pthread_join(other, NULL);
    printf("ranges 1\n");
}

#ifdef COPY
void copy_of_nvtx(void) { push_and_pop(3); }
#else
#include <dlfcn.h>
static void copies(char **libraries) {
    long ranges = 0;
    for (; *libraries; libraries++) {
        void *library = dlopen(*libraries, RTLD_NOW | RTLD_LOCAL);
        void (*copy)(void) = library ? (void (*)(void))dlsym(library, "copy_of_nvtx") : NULL;
        if (!copy) {
            printf("%s\n", dlerror());
            exit(1);
        }
        copy();
        ranges += 6;
    }
    printf("ranges %ld\n", ranges);
}

int main(int count, char **words) {
    if (count < 2)
        return 2;
    const char *what = words[1];
    if (!strcmp(what, "every")) every();
    else if (!strcmp(what, "threads")) threads(number(words, 2), number(words, 3));
    else if (!strcmp(what, "storm")) storm(number(words, 2));
    else if (!strcmp(what, "children")) children(number(words, 2));
    else if (!strcmp(what, "until-killed")) until_killed(words[2], number(words, 3));
    else if (!strcmp(what, "names")) names(number(words, 2));
    else if (!strcmp(what, "page-end")) page_end();
    else if (!strcmp(what, "across")) cross_thread();
    else if (!strcmp(what, "copies")) copies(words + 2);
    else if (!strcmp(what, "exec")) {
        long left = number(words, 2);
        push_and_pop(1);
        if (left > 1) {
            char text[20];
            snprintf(text, sizeof text, "%ld", left - 1);
            execl(words[0], words[0], "exec", text, (char *)NULL);
            return 1;
        }
    } else return 2;
    return 0;
}
#endif
