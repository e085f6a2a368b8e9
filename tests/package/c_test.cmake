# Installs the development files, builds the C example with what pkg-config says, and runs it on a tiny model.
find_program(PKG_CONFIG NAMES pkgconf pkg-config)
if(NOT PKG_CONFIG)
  message("skipped: there is no pkg-config")
  return()
endif()
set(scratch ${BUILD}/tests/package/c)
file(REMOVE_RECURSE ${scratch})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch} --component development
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
set(ENV{PKG_CONFIG_PATH} ${scratch}/${LIBDIR}/pkgconfig)
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs kvasir
  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
if(SANITIZE)
  list(APPEND flags -fsanitize=${SANITIZE})
endif()
execute_process(COMMAND ${COMPILER} -std=c99 -Wall -Wextra -Wpedantic -Werror ${SOURCE}/examples/c/answer.c
  -o ${scratch}/answer ${flags} -Wl,-rpath,${scratch}/${LIBDIR} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${scratch}/answer ${SOURCE}/tests/cases/models/llama-f32.gguf "the quick"
  OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output MATCHES "\n[0-9]+ tokens\nan embedding of 64 numbers, the first -?0\\.[0-9]+\n$")
  message(FATAL_ERROR "answer said only '${output}'")
endif()
execute_process(COMMAND ${scratch}/answer ${scratch}/missing.gguf "the quick"
  RESULT_VARIABLE result ERROR_VARIABLE said OUTPUT_QUIET)
if(NOT result EQUAL 1 OR NOT said MATCHES "^answer: load: [^\n]*missing.gguf[^\n]*\n$")
  message(FATAL_ERROR "without a model answer ended with ${result} and said '${said}'")
endif()
