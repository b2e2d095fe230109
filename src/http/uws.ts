/**
 * The only import of uWebSockets.js, so that another build of it can replace it. docs/dependencies.md names this build; a
 * test compares its binaries with the checksums in the repository.
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
  type us_socket_context_t,
  us_socket_local_port,
  type WebSocket,
  type WebSocketBehavior,
} from 'uWebSockets.js'
