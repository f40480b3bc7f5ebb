// interpose/nvtx/abi.h against NVTX's own headers: compiling it is the test.
#include <nvtx3/nvToolsExt.h>

#include "interpose/nvtx/abi.h"

using namespace dshang::nvtx;

#define SAME(own, theirs) static_assert(static_cast<long>(own) == static_cast<long>(theirs))
SAME(kCallbacksTable, NVTX_ETID_CALLBACKS);
SAME(Module::kCore, NVTX_CB_MODULE_CORE);
SAME(Module::kCuda, NVTX_CB_MODULE_CUDA);
SAME(Module::kOpenCl, NVTX_CB_MODULE_OPENCL);
SAME(Module::kCudart, NVTX_CB_MODULE_CUDART);
SAME(Module::kCore2, NVTX_CB_MODULE_CORE2);
SAME(Module::kSync, NVTX_CB_MODULE_SYNC);
SAME(kRangePushEx, NVTX_CBID_CORE_RangePushEx);
SAME(kRangePushA, NVTX_CBID_CORE_RangePushA);
SAME(kRangePushW, NVTX_CBID_CORE_RangePushW);
SAME(kRangePop, NVTX_CBID_CORE_RangePop);
SAME(kDomainRangePushEx, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(kDomainRangePop, NVTX_CBID_CORE2_DomainRangePop);
SAME(kDomainRegisterStringA, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(kDomainRegisterStringW, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(kDomainCreateA, NVTX_CBID_CORE2_DomainCreateA);
SAME(kDomainCreateW, NVTX_CBID_CORE2_DomainCreateW);
SAME(MessageType::kUnknown, NVTX_MESSAGE_UNKNOWN);
SAME(MessageType::kAscii, NVTX_MESSAGE_TYPE_ASCII);
SAME(MessageType::kUnicode, NVTX_MESSAGE_TYPE_UNICODE);
SAME(MessageType::kRegistered, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(kNoTracking, NVTX_NO_PUSH_POP_TRACKING);
SAME(sizeof(CallbacksTable), sizeof(NvtxExportTableCallbacks));
SAME(offsetof(CallbacksTable, module), offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
SAME(sizeof(Attributes), sizeof(nvtxEventAttributes_t));
SAME(offsetof(Attributes, size), offsetof(nvtxEventAttributes_t, size));
SAME(offsetof(Attributes, message_type), offsetof(nvtxEventAttributes_t, messageType));
SAME(offsetof(Attributes, message), offsetof(nvtxEventAttributes_t, message));

int main() {}
