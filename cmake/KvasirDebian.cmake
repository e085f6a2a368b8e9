# The Debian package `kvasir`: cpack -G DEB in the build folder, or `make deb`. All files but the program itself belong
# to the component `system`. `cmake --install` leaves it out, as it goes to fixed places of a Debian system.

set(kvasir_system_dir ${PROJECT_BINARY_DIR}/system)
add_custom_command(
  OUTPUT ${kvasir_system_dir}/made
  COMMAND ${CMAKE_COMMAND} "-DKVASIR=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:kvasir>" -DOUT=${kvasir_system_dir}
          -P ${PROJECT_SOURCE_DIR}/cmake/ManPages.cmake
  DEPENDS kvasir ${PROJECT_SOURCE_DIR}/cmake/ManPages.cmake
  VERBATIM)
add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/changelog.gz
  COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/deploy/debian/changelog > ${PROJECT_BINARY_DIR}/changelog.gz
  DEPENDS ${PROJECT_SOURCE_DIR}/deploy/debian/changelog)
add_custom_target(kvasir_system_files ALL DEPENDS ${kvasir_system_dir}/made ${PROJECT_BINARY_DIR}/changelog.gz)

# kvasir_system_install(FOLDER FILE ...)
function(kvasir_system_install folder)
  install(FILES ${ARGN} DESTINATION ${folder} COMPONENT system EXCLUDE_FROM_ALL)
endfunction()
install(DIRECTORY ${kvasir_system_dir}/man/ DESTINATION /usr/share/man/man1 COMPONENT system EXCLUDE_FROM_ALL)
install(DIRECTORY DESTINATION /var/lib/kvasir COMPONENT system EXCLUDE_FROM_ALL)
kvasir_system_install(/usr/share/bash-completion/completions ${kvasir_system_dir}/completions/bash/kvasir)
kvasir_system_install(/usr/share/zsh/vendor-completions ${kvasir_system_dir}/completions/zsh/_kvasir)
kvasir_system_install(/usr/share/fish/vendor_completions.d ${kvasir_system_dir}/completions/fish/kvasir.fish)
kvasir_system_install(/lib/systemd/system deploy/systemd/kvasir.service)
# Without it the first boot of an image that has the package would enable the unit.
kvasir_system_install(/lib/systemd/system-preset deploy/systemd/80-kvasir.preset)
kvasir_system_install(/usr/lib/sysusers.d deploy/systemd/kvasir.conf)
kvasir_system_install(/etc/kvasir deploy/kvasir.toml)
kvasir_system_install(/usr/share/kvasir/grafana deploy/grafana/kvasir.json)
kvasir_system_install(/usr/share/kvasir/prometheus deploy/prometheus/kvasir.rules.yml)

# The documents, in the folders that their links lead to.
set(kvasir_doc_dir /usr/share/doc/kvasir)
kvasir_system_install(${kvasir_doc_dir} deploy/debian/copyright ${PROJECT_BINARY_DIR}/changelog.gz README.md
  CONTRIBUTING.md SECURITY.md CHANGELOG.md)
install(DIRECTORY docs examples DESTINATION ${kvasir_doc_dir} COMPONENT system EXCLUDE_FROM_ALL)
install(DIRECTORY deploy/container deploy/kubernetes DESTINATION ${kvasir_doc_dir}/deploy
  COMPONENT system EXCLUDE_FROM_ALL)
# kvasir_system_link(NAME TARGET)
function(kvasir_system_link name target)
  install(CODE "file(CREATE_LINK ${target} \"\$ENV{DESTDIR}${name}\" SYMBOLIC)" COMPONENT system EXCLUDE_FROM_ALL)
endfunction()
kvasir_system_link(${kvasir_doc_dir}/LICENSE copyright)
kvasir_system_link(${kvasir_doc_dir}/deploy/grafana ../../../kvasir/grafana)
kvasir_system_link(${kvasir_doc_dir}/deploy/prometheus ../../../kvasir/prometheus)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kvasir)
set(CPACK_PACKAGE_CONTACT "Kvasir maintainers <maintainers@kvasir.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "inference engine and server for language models on CPUs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Kvasir runs GGUF models on processors with AVX2, AVX-512 or NEON, behind the
protocols of OpenAI and Anthropic, with a paged KV cache, continuous batching
and answers that do not depend on who else is being served.
.
The package has the program, a systemd unit that is not enabled, manual pages,
completions for bash, zsh and fish, and files for Prometheus and Grafana.")
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};kvasir;program;/" "${PROJECT_BINARY_DIR};kvasir;system;/")
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
if(CMAKE_CROSSCOMPILING)
  # CPack would ask dpkg for this system's libraries.
  set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/CrossDependencies.cmake)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_KVASIR_SYSROOT ${CMAKE_SYSROOT})
  set(CPACK_KVASIR_PROGRAM ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/kvasir)
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
# systemd-sysusers makes the service's user.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-pip")  # `kvasir pull`
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA conffiles postinst prerm postrm)
list(TRANSFORM CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA PREPEND ${PROJECT_SOURCE_DIR}/deploy/debian/)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
