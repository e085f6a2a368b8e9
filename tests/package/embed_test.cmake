# Installs the development files, builds the example against them alone, and runs it on a tiny model.
set(scratch ${BUILD}/tests/package)
file(REMOVE_RECURSE ${scratch}/installed ${scratch}/embed)
set(flags)
if(SANITIZE)
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/installed --component development
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples/embed -B ${scratch}/embed
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${scratch}/installed ${flags}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${scratch}/embed COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${scratch}/embed/embed ${SOURCE}/tests/cases/models/llama-f32.gguf "the quick"
  OUTPUT_VARIABLE answer COMMAND_ERROR_IS_FATAL ANY)
string(LENGTH "${answer}" length)
if(length LESS 8)
  message(FATAL_ERROR "embed answered only '${answer}'")
endif()
