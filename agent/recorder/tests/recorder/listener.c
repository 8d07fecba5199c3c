/* Another library that NVTX loads: it counts calls, and says at the program's end how many there were. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <nvtx3/nvToolsExt.h>

static long pushes, pops, starts, ends, marks;
static int depth(const char *text) { (void)text; return (int)__atomic_fetch_add(&pushes, 1, __ATOMIC_RELAXED) % 7 + 100; }
static int pop(void) { __atomic_fetch_add(&pops, 1, __ATOMIC_RELAXED); return 55; }
static void mark(const char *text) { (void)text; marks++; }
static uint64_t start(const char *text) { (void)text; return 0xabcd0000 + (uint64_t)++starts; }
static void end(uint64_t id) { if (id == 0xabcd0000 + (uint64_t)starts) ends++; }
static void say(void) {
    const char *path = getenv("LISTENER_SAYS");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "pushes %ld pops %ld starts %ld ends %ld marks %ld\n", pushes, pops, starts, ends, marks);
    fclose(file);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned count;
    if (getenv("LISTENER_FAILS")) return 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &count)) return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)depth;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    *table[NVTX_CBID_CORE_MarkA] = (NvtxFunctionPointer)mark;
    *table[NVTX_CBID_CORE_RangeStartA] = (NvtxFunctionPointer)start;
    *table[NVTX_CBID_CORE_RangeEnd] = (NvtxFunctionPointer)end;
    static int told;
    if (!told++) atexit(say);
    return 1;
}
