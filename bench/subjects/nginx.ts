import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../src/embedded/ports.ts'
import { startChild } from '../harness/children.ts'
import { diskBytes } from '../harness/disk.ts'
import { findNginx, nginxVersion } from '../harness/optional.ts'
import { accepts, untilReady } from '../harness/wait.ts'
import { plainEndpoint, type Stage, type Subject, wholeTree } from './subject.ts'

/**
 * nginx as a plain proxy with the usual settings for streams: one worker, keep-alive to the upstream, no buffering, no
 * log. It verifies the upstream's TLS, in the version that Node.js would choose.
 */

const KEPT_CONNECTIONS = 512

const server = (port: number, scheme: 'http' | 'https', extra: string): string => `
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass ${scheme}://${scheme}_upstream;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_buffering off;
      proxy_read_timeout 180s;
      ${extra}
    }
  }`

const upstreamBlock = (scheme: 'http' | 'https', port: number): string => `
  upstream ${scheme}_upstream {
    server 127.0.0.1:${port};
    keepalive ${KEPT_CONNECTIONS};
    keepalive_requests 1000000000;
  }`

const configuration = (stage: Stage, port: number, tlsPort: number | null): string => {
  const { upstream, certFile, folder, openFiles } = stage
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${join(folder, name)};`)
    .join('\n')
  const tls = `
      proxy_ssl_protocols TLSv1.2 TLSv1.3;
      proxy_ssl_verify on;
      proxy_ssl_trusted_certificate ${certFile};
      proxy_ssl_name localhost;
      proxy_ssl_server_name on;`
  return `
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
worker_rlimit_nofile ${openFiles};
pid ${join(folder, 'nginx.pid')};
error_log stderr error;
events { worker_connections ${openFiles}; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_buffer_size 256k;
${temporary}
${upstreamBlock('http', upstream.port)}
${server(port, 'http', '')}
${tlsPort === null ? '' : upstreamBlock('https', upstream.tlsPort!) + server(tlsPort, 'https', tls)}
}
`
}

export const nginx: Subject = {
  name: 'nginx',
  title: 'nginx, plain proxy',
  work: 'nothing',
  holdsManyStreams: true,
  start: async (stage) => {
    const binary = findNginx(stage.cache)
    mkdirSync(stage.folder, { recursive: true })
    const port = await freePort()
    const tlsPort = stage.certFile && stage.upstream.tlsPort ? await freePort() : null
    const file = join(stage.folder, 'nginx.conf')
    writeFileSync(file, configuration(stage, port, tlsPort))
    const args = ['-c', file, '-p', stage.folder, '-e', 'stderr']
    const startedAt = performance.now()
    const child = await startChild('nginx', binary, args, { core: stage.core })
    await untilReady(child, () => accepts(port))
    return {
      version: nginxVersion(binary)!,
      readyMs: performance.now() - startedAt,
      installedBytes: diskBytes(binary),
      plain: plainEndpoint(port),
      tls: tlsPort === null ? null : plainEndpoint(tlsPort),
      processes: wholeTree(child.pid),
      settling: null,
      stop: child.stop,
    }
  },
}
