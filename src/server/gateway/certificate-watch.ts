/** Takes up a renewed certificate without a restart. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { TlsFiles } from '../../../schemas/config/settings.ts'
import { findTlsProblem } from '../../http/certificate.ts'
import type { GatewayServer } from '../../http/server.ts'
import type { LogOutput } from '../../telemetry/log.ts'

/** Renewed certificates overlap with those before them by days. */
const CERTIFICATE_CHECK_MS = 2_000

function digestFiles({ cert, key }: TlsFiles): string {
  try {
    return createHash('sha256').update(readFileSync(cert)).update(readFileSync(key)).digest('hex')
  } catch {
    // Between the removal of the old file and the new one.
    return ''
  }
}

/** Checks the files until the process ends. An unusable pair is logged once, and the previous one stays. */
export function watchCertificate(
  files: TlsFiles,
  server: Pick<GatewayServer, 'reloadCertificate'>,
  log: LogOutput,
): void {
  let known = digestFiles(files)
  const look = async () => {
    const digest = digestFiles(files)
    if (digest === '' || digest === known) return
    known = digest
    const problem = findTlsProblem(files)
    if (problem === null) {
      await server.reloadCertificate()
      log.info({ cert: files.cert }, 'Applied the renewed TLS certificate')
    } else
      log.error({ cert: files.cert, problem }, 'Refused the TLS certificate; the former one stays in force')
  }
  setInterval(() => {
    look().catch((error) => log.error({ err: error }, 'Failed to apply the renewed TLS certificate'))
  }, CERTIFICATE_CHECK_MS).unref()
}
