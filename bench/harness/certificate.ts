import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { findProgram } from '../../src/embedded/programs.ts'

/** A temporary self-signed certificate for the upstream. */
interface Certificate {
  certFile: string
  keyFile: string
}

/** Creates one for localhost and 127.0.0.1. Returns null without openssl: the bench then skips TLS rows. */
export const makeCertificate = (folder: string): Certificate | null => {
  const openssl = findProgram('openssl')
  if (!openssl) return null
  const certFile = join(folder, 'upstream.crt')
  const keyFile = join(folder, 'upstream.key')
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1'
  const args = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ]
  execFileSync(
    openssl,
    [...args, '-subj', '/CN=localhost', '-addext', names, '-keyout', keyFile, '-out', certFile],
    { stdio: 'ignore' },
  )
  return { certFile, keyFile }
}
