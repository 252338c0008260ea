# Libraries from Debian 12, as imported targets. From DPDK only the ring, RCU and what they need.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(MNL REQUIRED IMPORTED_TARGET libmnl)
pkg_check_modules(BPF REQUIRED IMPORTED_TARGET libbpf)
pkg_check_modules(XDP REQUIRED IMPORTED_TARGET libxdp)
pkg_check_modules(CUNIT REQUIRED IMPORTED_TARGET cunit)

pkg_check_modules(DPDK REQUIRED libdpdk)
find_library(RTE_RING NAMES rte_ring REQUIRED)
find_library(RTE_RCU NAMES rte_rcu REQUIRED)
find_library(RTE_EAL NAMES rte_eal REQUIRED)
add_library(dpdk_ring INTERFACE)
target_include_directories(dpdk_ring SYSTEM INTERFACE ${DPDK_INCLUDE_DIRS})
# rte_*.h need the vector types of at least this level; our own code does not depend on it.
target_compile_options(dpdk_ring INTERFACE -include rte_config.h -mssse3)
target_link_libraries(dpdk_ring INTERFACE ${RTE_RING} ${RTE_RCU} ${RTE_EAL})

find_program(CLANG NAMES clang clang-14 REQUIRED)
find_program(BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin REQUIRED)
