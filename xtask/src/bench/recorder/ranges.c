/* Empty ranges on several threads at once: prints the processor time of one, and the memory of the process in kB. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <nvtx3/nvToolsExt.h>

static long ranges;
static pthread_barrier_t begin;

static void *work(void *took) {
    struct timespec from, to;
    pthread_barrier_wait(&begin);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (long at = 0; at < ranges; at++) {
        nvtxRangePushA("forward");
        nvtxRangePop();
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    *(double *)took = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int threads = atoi(words[1]);
    ranges = atol(words[2]);
    pthread_t all[64];
    double took[64], sum = 0;
    if (threads < 1 || threads > 64) return 2;
    /* The first range loads the libraries. */
    nvtxRangePushA("first");
    nvtxRangePop();
    pthread_barrier_init(&begin, NULL, (unsigned)threads);
    for (int at = 0; at < threads; at++) pthread_create(&all[at], NULL, work, &took[at]);
    for (int at = 0; at < threads; at++) {
        pthread_join(all[at], NULL);
        sum += took[at];
    }
    long kilobytes = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6)) kilobytes = atol(line + 6);
    printf("{\"ns\": %.2f, \"kilobytes\": %ld}\n", sum / threads / (double)ranges, kilobytes);
    return 0;
}
