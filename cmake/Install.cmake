# A program that runs from its prefix: bin/abtrain, share/abtrain/configs.
# LibTorch stays where the wheel is; its folder is in the run path.
include(GNUInstallDirs)
set_target_properties(abtrain PROPERTIES
  INSTALL_RPATH ${ABTRAIN_TORCH}/lib INSTALL_RPATH_USE_LINK_PATH TRUE)
install(TARGETS abtrain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/abtrain/configs)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
