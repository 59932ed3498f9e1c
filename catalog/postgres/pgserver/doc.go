// Package pgserver finds PostgreSQL server binaries, or fetches them, and runs a cluster
// of its own: for `catalogd dev`, which must need nothing but a folder, and for tests.
//
// The cluster lives in one folder and belongs to one process. Four rules make that safe:
//
//   - The folder is locked (flock) while a [Server] runs, so a second process gets a clear
//     error instead of a second postmaster.
//   - The server is asked by the kernel to shut down when our process dies (Linux), and
//     where that fails the next [Start] finds the orphan by its working directory, stops
//     it and waits for every backend to be gone before it starts a new one.
//   - A new cluster is made beside its final place and renamed, so that a crash during
//     initdb never leaves half a cluster behind.
//   - PostgreSQL refuses to run as root. For root the server runs as another account;
//     where that account cannot reach the folder (a clone below /root), the data folder
//     is handed over as an open descriptor.
package pgserver
