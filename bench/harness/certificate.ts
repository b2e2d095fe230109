import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { findProgram } from '../../src/embedded/programs.ts'

/** A throwaway certificate for the upstream, which is its own authority. */
export interface Certificate {
  certFile: string
  keyFile: string
}

/** Makes one for localhost and 127.0.0.1 with openssl; null where openssl is missing: TLS rows are then skipped. */
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
