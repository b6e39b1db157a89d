# A program that runs from its prefix: bin/abtrain, share/abtrain/{configs,slurm}.
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
