# CPack reads it before it makes a package of another architecture: adds the libraries of the program to
# CPACK_DEBIAN_PACKAGE_DEPENDS. They are found by the symbols in the sysroot's DEBIAN/ (scripts/debian_root.py).
set(kvasir_scratch ${CPACK_KVASIR_PROGRAM}-dependencies)
file(MAKE_DIRECTORY ${kvasir_scratch}/debian)
file(TOUCH ${kvasir_scratch}/debian/control)  # dpkg-shlibdeps insists on one
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C DEB_HOST_ARCH=${CPACK_DEBIAN_PACKAGE_ARCHITECTURE}
          dpkg-shlibdeps -S${CPACK_KVASIR_SYSROOT} -O ${CPACK_KVASIR_PROGRAM}
  WORKING_DIRECTORY ${kvasir_scratch}
  OUTPUT_VARIABLE kvasir_libraries OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${kvasir_scratch})
if(NOT kvasir_libraries MATCHES "^shlibs:Depends=(.+)$")
  message(FATAL_ERROR "dpkg-shlibdeps: ${kvasir_libraries}")
endif()
string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", ${CMAKE_MATCH_1}")
