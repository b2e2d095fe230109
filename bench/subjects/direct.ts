import { plainEndpoint, type Subject } from './subject.ts'

/** No proxy: added latency is the difference to this. */
export const direct: Subject = {
  name: 'direct',
  title: 'straight to the upstream',
  work: 'nothing',
  holdsManyStreams: false,
  start: async ({ upstream }) => ({
    version: '',
    plain: plainEndpoint(upstream.port),
    tls: null,
    processes: () => ({ gateway: [] }),
    settling: null,
    stop: async () => {},
  }),
}
