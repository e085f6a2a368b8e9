# Manual pages and completions as the program makes them: cmake -DKVASIR=bin/kvasir -DOUT=folder -P ManPages.cmake.
# Without the builder's settings: they would be written down as defaults.
set(clean env -i KVASIR_CONFIG= "PATH=$ENV{PATH}" ${KVASIR})
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT}/man ${OUT}/completions)
execute_process(COMMAND ${clean} man --folder ${OUT}/man COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND gzip -9nr ${OUT}/man COMMAND_ERROR_IS_FATAL ANY)
foreach(shell_and_file bash/kvasir zsh/_kvasir fish/kvasir.fish)
  get_filename_component(shell ${shell_and_file} DIRECTORY)
  file(MAKE_DIRECTORY ${OUT}/completions/${shell})
  execute_process(COMMAND ${clean} completion ${shell} OUTPUT_FILE ${OUT}/completions/${shell_and_file}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(TOUCH ${OUT}/made)
