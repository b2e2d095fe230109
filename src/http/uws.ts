/**
 * The one import of uWebSockets.js, so that another build of it can take its place. docs/operating.md says which build
 * this is; a test compares its binaries with the checksums that are kept in the repository.
 */

// Before the server is loaded.
import './head-limit.ts'

export {
  App,
  type HttpRequest,
  type HttpResponse,
  SSLApp,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js'
