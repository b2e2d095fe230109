import { FAST, plainEndpoint, type Subject } from './subject.ts'

/** Nothing between: what added latency is measured against. */
export const direct: Subject = {
  name: 'direct',
  title: 'straight to the upstream',
  effort: FAST,
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
