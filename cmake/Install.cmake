# Installs a program that runs from its prefix: bin/abtrain,
# share/abtrain/{configs,slurm,scripts}, shell completion and manual pages. LibTorch
# stays in its wheel, whose folder is in the run path.
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
# The files for shells and `man`, which the program itself prints. Left out where it
# may not run here (ABTRAIN_STATIC) or has a sanitizer. They are made at install time,
# so that only the program needs to be built for them. It is called by name: completion
# scripts call the program as it was called.
if(NOT CMAKE_CROSSCOMPILING AND NOT ABTRAIN_STATIC AND NOT ABTRAIN_SANITIZE)
  set(pages ${CMAKE_BINARY_DIR}/pages)
  install(CODE "file(REMOVE_RECURSE [==[${pages}]==])\nfile(MAKE_DIRECTORY [==[${pages}]==])")
  function(abtrain_page file arguments folder)
    install(CODE "execute_process(
      COMMAND env \"PATH=$<TARGET_FILE_DIR:abtrain>:\$ENV{PATH}\" abtrain ${arguments}
      OUTPUT_FILE [==[${pages}/${file}]==] COMMAND_ERROR_IS_FATAL ANY)")
    install(FILES ${pages}/${file} DESTINATION ${folder})
  endfunction()
  abtrain_page(abtrain "completion bash" ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  abtrain_page(_abtrain "completion zsh" ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  abtrain_page(abtrain.fish "completion fish" ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  abtrain_page(abtrain.1 man ${CMAKE_INSTALL_MANDIR}/man1)
  abtrain_page(abtrain-config.5 "man abtrain-config" ${CMAKE_INSTALL_MANDIR}/man5)
endif()
