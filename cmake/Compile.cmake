# Warnings, hardening and sanitizers for every target of the project: link `xvs_compile`.
add_library(xvs_compile INTERFACE)
target_include_directories(xvs_compile INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(xvs_compile INTERFACE _GNU_SOURCE XVS_VERSION="${PROJECT_VERSION}")
target_compile_options(xvs_compile INTERFACE
  -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-align=strict -Wcast-qual -Wstrict-prototypes
  -Wmissing-prototypes -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wconversion -Wsign-conversion
  -Wlogical-op -Wduplicated-cond -Wnull-dereference -Wimplicit-fallthrough=5
  -fstack-protector-strong)
if(XVS_WERROR)
  target_compile_options(xvs_compile INTERFACE -Werror)
endif()
if(XVS_SANITIZE)
  target_compile_options(xvs_compile INTERFACE
    -fsanitize=${XVS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined
    -Wno-null-dereference)
  # TSan does not model fences (-Wtsan) and cannot see through rte_ring's volatile accesses.
  if(XVS_SANITIZE MATCHES "thread")
    target_compile_options(xvs_compile INTERFACE -Wno-tsan)
    target_compile_definitions(xvs_compile INTERFACE RTE_USE_C11_MEM_MODEL)
  endif()
  target_link_options(xvs_compile INTERFACE -fsanitize=${XVS_SANITIZE})
else()
  target_compile_options(xvs_compile INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>)
endif()
target_link_options(xvs_compile INTERFACE -pie -Wl,-z,relro,-z,now)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")

# xvs_library(NAME sources... [LINK libraries...]): one folder's static library.
function(xvs_library name)
  cmake_parse_arguments(LIB "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${LIB_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC xvs_compile ${LIB_LINK})
endfunction()
