# The engine as an installed CMake package, for programs that embed it (examples/embed). It has the libraries of the
# layers up to the engine, and the headers of include/kvasir. The layers' own headers stay in the source tree.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(kvasir_package_targets)
foreach(layer ${KVASIR_CORE_LAYERS})
  list(APPEND kvasir_package_targets kvasir_${layer})
  set_target_properties(kvasir_${layer} PROPERTIES EXPORT_NAME ${layer})
endforeach()
install(TARGETS ${kvasir_package_targets} EXPORT kvasir
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/kvasir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT kvasir NAMESPACE kvasir:: FILE kvasir-targets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvasir COMPONENT development)
configure_package_config_file(cmake/kvasir-config.cmake.in ${PROJECT_BINARY_DIR}/kvasir-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvasir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kvasir-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kvasir-config.cmake ${PROJECT_BINARY_DIR}/kvasir-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvasir COMPONENT development)
