# Installs a program that runs from its prefix: bin/abtrain, lib/abtrain (its plug-ins),
# share/abtrain/{configs,slurm,scripts,python}, and shell completion. LibTorch
# stays in its wheel, whose folder is in the run path.
include(GNUInstallDirs)
if(NOT ABTRAIN_STATIC)
  set_target_properties(abtrain PROPERTIES
    INSTALL_RPATH ${ABTRAIN_TORCH}/lib INSTALL_RPATH_USE_LINK_PATH TRUE)
endif()
install(TARGETS abtrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(kind IN ITEMS openmpi mpich)
  if(TARGET abtrain_mpi_${kind})
    install(TARGETS abtrain_mpi_${kind} LIBRARY DESTINATION lib/abtrain)
  endif()
endforeach()
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/abtrain/configs)
# The batch files look for the scripts beside their folder.
install(DIRECTORY slurm/ DESTINATION ${CMAKE_INSTALL_DATADIR}/abtrain/slurm USE_SOURCE_PERMISSIONS)
install(PROGRAMS scripts/restart.sh scripts/pass_signals.sh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/abtrain/scripts)
if(NOT SKBUILD)  # a wheel has the package itself
  install(DIRECTORY python/ DESTINATION ${CMAKE_INSTALL_DATADIR}/abtrain/python
    PATTERN __pycache__ EXCLUDE)
endif()
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The files for shells, which the program itself prints. Left out with a
# sanitizer. They are made at install time, so that only the program needs to be built
# for them. It is called by name: completion scripts call the program as it was called.
# In a Python wheel they go to share/ of the environment, not of the package.
if(NOT CMAKE_CROSSCOMPILING AND NOT ABTRAIN_SANITIZE)
  set(pages ${CMAKE_BINARY_DIR}/pages)
  set(page_data ${CMAKE_INSTALL_DATADIR})
  if(SKBUILD_DATA_DIR)
    set(page_data ${SKBUILD_DATA_DIR}/share)
  endif()
  cmake_path(GET ABTRAIN_TORCH PARENT_PATH site)
  list(TRANSFORM ABTRAIN_TORCH_FOLDERS PREPEND ${site}/ OUTPUT_VARIABLE page_libraries)
  list(JOIN page_libraries ":" page_libraries)
  install(CODE "file(REMOVE_RECURSE [==[${pages}]==])\nfile(MAKE_DIRECTORY [==[${pages}]==])")
  function(abtrain_page file arguments folder)
    install(CODE "execute_process(
      COMMAND env \"PATH=$<TARGET_FILE_DIR:abtrain>:\$ENV{PATH}\"
        \"LD_LIBRARY_PATH=${page_libraries}:\$ENV{LD_LIBRARY_PATH}\" abtrain ${arguments}
      OUTPUT_FILE [==[${pages}/${file}]==] COMMAND_ERROR_IS_FATAL ANY)")
    install(FILES ${pages}/${file} DESTINATION ${page_data}/${folder})
  endfunction()
  abtrain_page(abtrain "completion bash" bash-completion/completions)
  abtrain_page(_abtrain "completion zsh" zsh/site-functions)
  abtrain_page(abtrain.fish "completion fish" fish/vendor_completions.d)
endif()
