// The MPI calls that abtrain makes, as a table of C functions. MPI's handles
// and constants differ between Open MPI and MPICH, so plugin.c fills in one
// table for each, in a shared object of its own; comm/mpi/library.h loads the
// one that fits. Handles are opaque here. Functions that return int return
// MPI's error code, which is 0 for success.
#pragma once

#ifdef __cplusplus
namespace abtrain::comm {
extern "C" {
#endif

// An MPI_Comm or MPI_Request.
typedef void* MpiHandle;

typedef struct MpiTable {
  // May be called at any time, also before `init`. `text` has room for
  // `text_bytes` bytes.
  int text_bytes;
  int (*library_version)(char* text);
  int (*error_text)(int code, char* text);

  // *threads: whether the process may have threads that do not call MPI.
  int (*init)(int* threads);
  // The largest tag of a message, after `init`. The standard promises 32767.
  int (*tag_bound)(int* bound);
  // What carries the messages, after `init`: "UCX". `text` as above.
  void (*transport)(char* text);
  int (*finalize)(void);

  // New communicators return errors instead of ending the process.
  int (*copy_of_world)(MpiHandle* comm);
  // The members of a part are in the order of the whole.
  int (*split)(MpiHandle comm, int color, MpiHandle* part);
  int (*free_comm)(MpiHandle comm);
  int (*rank_and_size)(MpiHandle comm, int* rank, int* size);
  // workers[i]: the rank in `world` of member i of a communicator of `size`.
  int (*workers)(MpiHandle comm, MpiHandle world, int size, int* workers);

  // Starts to send `data`, or to receive into it.
  int (*post)(
      int sends, void* data, int bytes, int peer, int tag, MpiHandle comm, MpiHandle* request);
  // which[0 .. *through - 1] are the indices of those requests of a communicator
  // that have completed. Where a process may be lost, requests that end with an
  // error are not freed, as MPI_Testsome would: Open MPI ends the process if what
  // is left of a freed request fails later.
  int (*test_some)(MpiHandle comm, int count, const MpiHandle* requests, int* through, int* which);
  // Whether a message from `peer` waits to be received, and its tag. Every call lets MPI
  // advance its transfers.
  int (*probe)(MpiHandle comm, int peer, int* there, int* tag);

  // Whether processes outlive the loss of another one, as under Open MPI's
  // `mpirun --with-ft ulfm`. Only then may the following be called.
  int (*is_fault_tolerant)(void);
  // Ends all transfers of a communicator, on all members, with an error.
  int (*revoke)(MpiHandle comm);
  // The members of a revoked communicator that are left, in the same order.
  // Waits until each of the others has called it or is lost.
  int (*shrink)(MpiHandle comm, MpiHandle* left);
} MpiTable;

#ifdef __cplusplus
}
}  // namespace abtrain::comm
#endif
