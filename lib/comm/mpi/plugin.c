// Implements comm/mpi/table.h for one MPI. cmake/Mpi.cmake compiles this file once with Open MPI's
// mpi.h and once with MPICH's. MPI's symbols come from the library that comm/mpi/library.cpp has
// loaded before this plug-in.
#define _GNU_SOURCE  // RTLD_DEFAULT
#include "comm/mpi/table.h"

#define MPICH_SKIP_MPICXX
#define OMPI_SKIP_MPICXX
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ABTRAIN_OLDEST_GLIBC  // for systems before glibc 2.34, as in cmake/old_symbols.cpp
__asm__(".symver dlsym, dlsym@" ABTRAIN_OLDEST_GLIBC);
#endif

// MPI_Comm and MPI_Request are pointers in Open MPI and integers in MPICH.
static MPI_Comm comm_of(MpiHandle handle) {
  return (MPI_Comm)(intptr_t)handle;
}

static MPI_Request request_of(MpiHandle handle) {
  return (MPI_Request)(intptr_t)handle;
}

static int library_version(char* text) {
  int length = 0;
  return MPI_Get_library_version(text, &length);
}

static int init(int* threads) {
  int provided = 0;
  const int code = MPI_Init_thread(0, 0, MPI_THREAD_FUNNELED, &provided);
  *threads = provided >= MPI_THREAD_FUNNELED;
  return code;
}

static int tag_bound(int* bound) {
  int* value = NULL;
  int there = 0;
  const int code = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &there);
  *bound = code == MPI_SUCCESS && there ? *value : 32767;
  return code;
}

#ifdef OMPI_MAJOR_VERSION
// Names the point-to-point layer (PML) in use: Open MPI lists settings only for that layer, among
// them pml_NAME_priority.
static void transport(char* text) {
  int threads = 0;
  int count = 0;
  strcpy(text, "an unknown transport");
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &threads) != MPI_SUCCESS) {
    return;
  }
  MPI_T_cvar_get_num(&count);
  for (int i = 0; i < count; ++i) {
    char name[256] = "";
    char layer[32] = "";
    int name_bytes = sizeof(name);
    int other = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const int code =
        MPI_T_cvar_get_info(i, name, &name_bytes, &other, &type, NULL, NULL, NULL, &other, &other);
    if (code == MPI_SUCCESS && sscanf(name, "pml_%31[a-z0-9]_priority", layer) == 1 &&
        strcmp(name + strlen("pml_") + strlen(layer), "_priority") == 0) {
      const int is_ob1 = strcmp(layer, "ob1") == 0;
      const int is_cm = strcmp(layer, "cm") == 0;
      const char* name_of_layer = strcmp(layer, "ucx") == 0 ? "UCX" : layer;
      strcpy(
          text, is_ob1  ? "TCP and shared memory (ob1)"
                : is_cm ? "libfabric or PSM (cm)"
                        : name_of_layer);
      break;
    }
  }
  MPI_T_finalize();
}
#else
// Notes whether UCX or libfabric is in use. MPICH comes with both, but UCX loads its transports
// (libuct_*), and Intel MPI loads libfabric, only when they are used.
static int note_library(struct dl_phdr_info* info, size_t size, void* found) {
  (void)size;
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* name = slash ? slash + 1 : info->dlpi_name;
  ((int*)found)[0] |= strncmp(name, "libuct_", 7) == 0;
  ((int*)found)[1] |= strncmp(name, "libfabric.so", 12) == 0;
  return 0;
}

static void transport(char* text) {
  int found[2] = {0, 0};
  dl_iterate_phdr(note_library, found);
  const char* provider = getenv("FI_PROVIDER");
  if (!found[0] && found[1] && provider) {
    sprintf(text, "libfabric (%.40s)", provider);
  } else {
    strcpy(text, found[0] ? "UCX" : found[1] ? "libfabric" : "shared memory");
  }
}
#endif

static int finish_comm(int code, MPI_Comm comm, MpiHandle* handle) {
  if (code == MPI_SUCCESS) {
    code = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  *handle = (MpiHandle)(intptr_t)comm;
  return code;
}

static int copy_of_world(MpiHandle* comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  return finish_comm(code, copy, comm);
}

static int split(MpiHandle comm, int color, MpiHandle* part) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Comm_split(comm_of(comm), color, /*key=*/0, &made);
  return finish_comm(code, made, part);
}

static int free_comm(MpiHandle comm) {
  MPI_Comm freed = comm_of(comm);
  return MPI_Comm_free(&freed);
}

static int rank_and_size(MpiHandle comm, int* rank, int* size) {
  const int code = MPI_Comm_rank(comm_of(comm), rank);
  return code == MPI_SUCCESS ? MPI_Comm_size(comm_of(comm), size) : code;
}

static int workers(MpiHandle comm, MpiHandle world, int size, int* workers) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group part = MPI_GROUP_NULL;
  int code = MPI_Comm_group(comm_of(world), &all);
  if (code == MPI_SUCCESS) {
    code = MPI_Comm_group(comm_of(comm), &part);
  }
  for (int i = 0; i < size && code == MPI_SUCCESS; ++i) {
    code = MPI_Group_translate_ranks(part, 1, &i, all, &workers[i]);
  }
  if (part != MPI_GROUP_NULL) {
    MPI_Group_free(&part);
  }
  if (all != MPI_GROUP_NULL) {
    MPI_Group_free(&all);
  }
  return code;
}

static int post(
    int sends, void* data, int bytes, int peer, int tag, MpiHandle comm, MpiHandle* request) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = sends ? MPI_Isend(data, bytes, MPI_BYTE, peer, tag, comm_of(comm), &made)
                         : MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, comm_of(comm), &made);
  *request = (MpiHandle)(intptr_t)made;
  return code;
}

static int probe(MpiHandle comm, int peer, int* there, int* tag) {
  MPI_Status status;
  const int code = MPI_Iprobe(peer, MPI_ANY_TAG, comm_of(comm), there, &status);
  if (*there) {
    *tag = status.MPI_TAG;
  }
  return code;
}

// MPI's functions for fault tolerance. Not every Open MPI has them, so is_fault_tolerant() looks
// them up; they may be called only after it has returned true. MPICH has them too, but its mpiexec
// ends all processes when one is lost.
static int (*ulfm_revoke)(MPI_Comm);
static int (*ulfm_shrink)(MPI_Comm, MPI_Comm*);
static int (*ulfm_is_revoked)(MPI_Comm, int*);
static int (*ulfm_get_failed)(MPI_Comm, MPI_Group*);

static int is_fault_tolerant(void) {
#ifdef OMPI_MAJOR_VERSION
  static int known = -1;
  if (known < 0) {
    const char* enabled = getenv("OMPI_MCA_mpi_ft_enable");
    ulfm_revoke = (int (*)(MPI_Comm))dlsym(RTLD_DEFAULT, "MPIX_Comm_revoke");
    ulfm_shrink = (int (*)(MPI_Comm, MPI_Comm*))dlsym(RTLD_DEFAULT, "MPIX_Comm_shrink");
    ulfm_is_revoked = (int (*)(MPI_Comm, int*))dlsym(RTLD_DEFAULT, "MPIX_Comm_is_revoked");
    ulfm_get_failed = (int (*)(MPI_Comm, MPI_Group*))dlsym(RTLD_DEFAULT, "MPIX_Comm_get_failed");
    known = enabled && strcmp(enabled, "0") != 0 && ulfm_revoke && ulfm_shrink &&
            ulfm_is_revoked && ulfm_get_failed;
  }
  return known;
#else
  return 0;
#endif
}

static int error_text(int code, char* text) {
  if (code == MPI_ERR_OTHER && is_fault_tolerant()) {  // from check() below
    strcpy(text, "a worker is lost");
    return MPI_SUCCESS;
  }
  int length = 0;
  return MPI_Error_string(code, text, &length);
}

static int revoke(MpiHandle comm) {
  return ulfm_revoke(comm_of(comm));
}

static int shrink(MpiHandle comm, MpiHandle* left) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = ulfm_shrink(comm_of(comm), &made);
  return finish_comm(code, made, left);
}

static int check(MpiHandle handle) {
  const MPI_Comm comm = comm_of(handle);
  int revoked = 0;
  int code = ulfm_is_revoked(comm, &revoked);
  if (code != MPI_SUCCESS || revoked) {
    return code != MPI_SUCCESS ? code : MPI_ERR_OTHER;
  }
  MPI_Group failed = MPI_GROUP_NULL;
  int count = 0;
  code = ulfm_get_failed(comm, &failed);
  if (code == MPI_SUCCESS) {
    code = MPI_Group_size(failed, &count);
    MPI_Group_free(&failed);
  }
  return code == MPI_SUCCESS && count > 0 ? MPI_ERR_OTHER : code;
}

static int test_some(
    MpiHandle comm, int count, const MpiHandle* requests, int* through, int* which) {
  MPI_Request own[count > 0 ? count : 1];
  *through = 0;
  if (!is_fault_tolerant()) {
    for (int i = 0; i < count; ++i) {
      own[i] = request_of(requests[i]);
    }
    const int code = MPI_Testsome(count, own, through, which, MPI_STATUSES_IGNORE);
    if (*through == MPI_UNDEFINED) {
      *through = 0;
    }
    return code;
  }
  int done = 0;
  for (int i = 0; i < count; ++i) {
    int flag = 0;
    const int code = MPI_Request_get_status(request_of(requests[i]), &flag, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
      return code;
    }
    if (flag) {
      own[done] = request_of(requests[i]);
      which[done++] = i;
    }
  }
  // Once a request has ended with an error, MPI knows the loss.
  int code = done > 0 || count == 0 ? check(comm) : MPI_SUCCESS;
  for (int i = 0; i < done && code == MPI_SUCCESS; ++i) {
    int flag = 0;
    code = MPI_Test(&own[i], &flag, MPI_STATUS_IGNORE);  // frees the request
  }
  *through = code == MPI_SUCCESS ? done : 0;
  return code;
}

__attribute__((visibility("default"))) const MpiTable abtrain_mpi_table = {
    .text_bytes = MPI_MAX_LIBRARY_VERSION_STRING > MPI_MAX_ERROR_STRING
                      ? MPI_MAX_LIBRARY_VERSION_STRING
                      : MPI_MAX_ERROR_STRING,
    .library_version = library_version,
    .error_text = error_text,
    .init = init,
    .tag_bound = tag_bound,
    .transport = transport,
    .finalize = MPI_Finalize,
    .copy_of_world = copy_of_world,
    .split = split,
    .free_comm = free_comm,
    .rank_and_size = rank_and_size,
    .workers = workers,
    .post = post,
    .test_some = test_some,
    .probe = probe,
    .is_fault_tolerant = is_fault_tolerant,
    .check = check,
    .revoke = revoke,
    .shrink = shrink};
