import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startChild } from '../harness/children.ts'
import { nextMessage } from '../harness/wait.ts'
import { plainEndpoint, type Stage, type Subject, wholeTree } from './subject.ts'

const readVersion = (name: string): string => {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
  return `${name} ${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`
}

interface Bare {
  name: string
  title: string
  /** Takes origins as arguments and sends a port for each. */
  program: string
  packages: string[]
  speaksTls: boolean
}

const listOrigins = ({ upstream, certFile }: Stage, speaksTls: boolean): string[] => {
  const tls = speaksTls && certFile !== null && upstream.tlsPort !== null
  const plain = `http://127.0.0.1:${upstream.port}`
  return tls ? [plain, `https://127.0.0.1:${upstream.tlsPort}`] : [plain]
}

/** A proxy that does none of a gateway's work. */
const bare = ({ name, title, program, packages, speaksTls }: Bare): Subject => ({
  name,
  title,
  work: 'nothing',
  holdsManyStreams: true,
  start: async (stage) => {
    const path = fileURLToPath(new URL(program, import.meta.url))
    const startedAt = performance.now()
    const child = await startChild(name, process.execPath, [path, ...listOrigins(stage, speaksTls)], {
      core: stage.core,
      env: stage.certFile === null ? {} : { NODE_EXTRA_CA_CERTS: stage.certFile },
      messages: true,
    })
    const [plainPort = 0, tlsPort] = await nextMessage<number[]>(child)
    return {
      version: packages.map(readVersion).join(', '),
      readyMs: performance.now() - startedAt,
      plain: plainEndpoint(plainPort),
      tls: tlsPort === undefined ? null : plainEndpoint(tlsPort),
      processes: wholeTree(child.pid),
      settling: null,
      stop: child.stop,
    }
  },
})

/** What the same server costs with undici. */
export const uwsUndici = bare({
  name: 'uws-undici',
  title: 'uWebSockets.js + undici, bare',
  program: 'uws-undici-proxy.ts',
  packages: ['uWebSockets.js', 'undici'],
  speaksTls: false,
})

/** What Tollgate's server and upstream client cost: the lower bound of its figures. */
export const uwsClient = bare({
  name: 'uws-client',
  title: "Tollgate's parts, bare",
  program: 'uws-client-proxy.ts',
  packages: ['uWebSockets.js'],
  speaksTls: true,
})
