# Turns the lists of names (stubs/<library>.txt; one name a line, # begins a comment) into weak functions that return
# the library's "not supported": one generated file a library. Sets simcuda_stubs.
set(simcuda_stubs)

function(simgpu_stubs library code call)
  set(list ${CMAKE_CURRENT_SOURCE_DIR}/stubs/${library}.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} names REGEX "^[A-Za-z_]")
  set(text "// Generated from simgpu/stubs/${library}.txt.\n#include \"simgpu/stubs/unsupported.h\"\n\n")
  foreach(name ${names})
    string(APPEND text "SIMGPU_API __attribute__((weak)) long ${name}() {\n  return simgpu::${call}(\"${name}\", ${code});\n}\n")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/stubs_${library}.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT "${text}" @ONLY)
  set(simcuda_stubs ${simcuda_stubs} ${generated} PARENT_SCOPE)
endfunction()

simgpu_stubs(cudart 801 unsupported_runtime_call)     # cudaErrorNotSupported
simgpu_stubs(driver 801 unsupported_call)             # CUDA_ERROR_NOT_SUPPORTED
simgpu_stubs(cublas 15 unsupported_call)              # CUBLAS_STATUS_NOT_SUPPORTED
simgpu_stubs(cudnn 3000 unsupported_call)             # CUDNN_STATUS_NOT_SUPPORTED
simgpu_stubs(cusparse 10 unsupported_call)            # CUSPARSE_STATUS_NOT_SUPPORTED
simgpu_stubs(cusolver 9 unsupported_call)             # CUSOLVER_STATUS_NOT_SUPPORTED
simgpu_stubs(cufft 16 unsupported_call)               # CUFFT_NOT_SUPPORTED
simgpu_stubs(nccl 5 unsupported_call)                 # ncclInvalidUsage
