// The MPI calls that abtrain makes, as a table of C functions. MPI's handles and constants differ
// between Open MPI and MPICH, so plugin.c fills in one table for each, in separate shared objects;
// comm/mpi/library.h loads the table that fits. Handles are opaque here. Functions that return int
// return MPI's error code, 0 for success.
#pragma once

#ifdef __cplusplus
namespace abtrain::comm {
extern "C" {
#endif

// An MPI_Comm or MPI_Request.
typedef void* MpiHandle;

typedef struct MpiTable {
  // May be called at any time, even before `init`. `text` has room for `text_bytes` bytes.
  int text_bytes;
  int (*library_version)(char* text);
  int (*error_text)(int code, char* text);

  // *threads: whether the process may have threads that do not call MPI.
  int (*init)(int* threads);
  // The largest tag of a message, after `init`. The standard promises 32767.
  int (*tag_bound)(int* bound);
  // Names the transport of the messages, such as "UCX". Call it after `init`. `text` as above.
  void (*transport)(char* text);
  int (*finalize)(void);

  // New communicators return errors instead of ending the process.
  int (*copy_of_world)(MpiHandle* comm);
  // The members of `part` keep their order in `comm`.
  int (*split)(MpiHandle comm, int color, MpiHandle* part);
  int (*free_comm)(MpiHandle comm);
  int (*rank_and_size)(MpiHandle comm, int* rank, int* size);
  // workers[i] receives the rank in `world` of member i of `comm`, which has `size` members.
  int (*workers)(MpiHandle comm, MpiHandle world, int size, int* workers);

  // Starts sending `data`, or receiving into it.
  int (*post)(
      int sends, void* data, int bytes, int peer, int tag, MpiHandle comm, MpiHandle* request);
  // which[0 .. *through - 1] receives the indices of the completed requests. All `requests` belong
  // to `comm`. If is_fault_tolerant(), requests that end with an error are not freed, unlike in
  // MPI_Testsome: Open MPI ends the process if the rest of a freed request fails later.
  int (*test_some)(MpiHandle comm, int count, const MpiHandle* requests, int* through, int* which);
  // Sets *there to whether a message from `peer` is waiting, and *tag to its tag. Every call also
  // lets MPI advance its transfers.
  int (*probe)(MpiHandle comm, int peer, int* there, int* tag);

  // Whether processes survive the loss of another one, as under Open MPI's `mpirun --with-ft ulfm`.
  // Only then may the functions below be called.
  int (*is_fault_tolerant)(void);
  // Returns an error if a member of the communicator is lost, or if the communicator is revoked. A
  // message to a lost member may stay under way forever.
  int (*check)(MpiHandle comm);
  // Ends all transfers of a communicator with an error, on all members.
  int (*revoke)(MpiHandle comm);
  // Makes a communicator of the surviving members of a revoked communicator, in the same order.
  // Waits until each other member has called it or is lost.
  int (*shrink)(MpiHandle comm, MpiHandle* left);
} MpiTable;

#ifdef __cplusplus
}
}  // namespace abtrain::comm
#endif
