/* Ranges of NVTX of every kind: both styles, domains, categories, registered names, payloads, marks, one left open. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    long rounds = count > 1 ? atol(words[1]) : 1000;
    nvtxDomainHandle_t domain = nvtxDomainCreateA("training");
    nvtxDomainNameCategoryA(domain, 3, "loading");
    nvtxNameCategoryA(5, "of the default domain");
    nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "a registered name");
    nvtxRangeStartA("left open");
    for (long at = 0; at < rounds; at++) {
        char name[32];
        snprintf(name, sizeof name, "step %ld", at % 50);
        nvtxEventAttributes_t said = {0};
        said.version = NVTX_VERSION;
        said.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        said.category = at % 2 ? 3 : 4;
        said.colorType = NVTX_COLOR_ARGB;
        said.color = 0xFF000000u + (uint32_t)at % 7;
        said.payloadType = (int32_t)(at % 7);
        said.payload.llValue = -at;
        said.messageType = at % 3 ? NVTX_MESSAGE_TYPE_ASCII : NVTX_MESSAGE_TYPE_REGISTERED;
        if (at % 3) said.message.ascii = name;
        else said.message.registered = registered;
        nvtxDomainRangePushEx(domain, &said);
        nvtxRangePushA(at % 5 ? "inner" : "");
        nvtxRangePop();
        nvtxDomainRangePop(domain);
        if (at % 100 == 0) {
            nvtxRangeId_t id = nvtxRangeStartA("apart");
            nvtxMarkA("a mark");
            nvtxRangeEnd(id);
        }
    }
    return 0;
}
