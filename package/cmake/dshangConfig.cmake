# find_package(dshang): dshang::dshang has dshang.h, whose functions are weak (nothing is linked: a program runs without
# dshang too); dshang::preload is libdshang.so, for LD_PRELOAD.
get_filename_component(_dshang_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET dshang::dshang)
  add_library(dshang::dshang INTERFACE IMPORTED)
  set_target_properties(dshang::dshang PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${_dshang_prefix}/include
    INTERFACE_COMPILE_DEFINITIONS "DSHANG_WEAK=" INTERFACE_POSITION_INDEPENDENT_CODE ON)
  add_library(dshang::preload SHARED IMPORTED)
  set_target_properties(dshang::preload PROPERTIES IMPORTED_LOCATION ${_dshang_prefix}/lib/dshang/libdshang.so)
endif()
unset(_dshang_prefix)
