# xvs_python_test(LABEL FILE TIMEOUT seconds): registers a test program written in Python. Exit
# status 77 means skipped. These tests use CPUs, namespaces and huge pages: one at a time.
function(xvs_python_test label file)
  cmake_parse_arguments(T "" "TIMEOUT" "" ${ARGN})
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME ${label}.${name}
    COMMAND /usr/bin/python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_tests_properties(${label}.${name} PROPERTIES
    LABELS ${label} TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77 RUN_SERIAL ON
    ENVIRONMENT "XVS_BUILD=${PROJECT_BINARY_DIR};PYTHONUNBUFFERED=1")
endfunction()
