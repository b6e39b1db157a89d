# A program that runs from its prefix: bin/abtrain, share/abtrain/{configs,slurm},
# completion for shells and manual pages.
# LibTorch stays where the wheel is; its folder is in the run path.
include(GNUInstallDirs)
set_target_properties(abtrain PROPERTIES
  INSTALL_RPATH ${ABTRAIN_TORCH}/lib INSTALL_RPATH_USE_LINK_PATH TRUE)
install(TARGETS abtrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/abtrain/configs)
# The batch files look for the scripts beside their folder.
install(DIRECTORY slurm/ DESTINATION ${CMAKE_INSTALL_DATADIR}/abtrain/slurm USE_SOURCE_PERMISSIONS)
install(PROGRAMS scripts/restart.sh scripts/pass_signals.sh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/abtrain/scripts)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# What shells and `man` read, printed by the program itself where it runs as it was
# built: not on another machine (ABTRAIN_STATIC), nor under a sanitizer. Made when
# they are installed, so that nothing but the program must be built for them.
if(NOT CMAKE_CROSSCOMPILING AND NOT ABTRAIN_STATIC AND NOT ABTRAIN_SANITIZE)
  set(pages ${CMAKE_BINARY_DIR}/pages)
  install(CODE "file(REMOVE_RECURSE [==[${pages}]==])\nfile(MAKE_DIRECTORY [==[${pages}]==])")
  function(abtrain_page file arguments folder)
    install(CODE "execute_process(COMMAND [==[$<TARGET_FILE:abtrain>]==] ${arguments}
      OUTPUT_FILE [==[${pages}/${file}]==] COMMAND_ERROR_IS_FATAL ANY)")
    install(FILES ${pages}/${file} DESTINATION ${folder})
  endfunction()
  abtrain_page(abtrain "completion bash" ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  abtrain_page(_abtrain "completion zsh" ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  abtrain_page(abtrain.fish "completion fish" ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  abtrain_page(abtrain.1 man ${CMAKE_INSTALL_MANDIR}/man1)
  abtrain_page(abtrain-config.5 "man abtrain-config" ${CMAKE_INSTALL_MANDIR}/man5)
endif()
