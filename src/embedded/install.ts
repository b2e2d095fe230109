/**
 * Run by npm after an installation, so that the first start finds a NATS server and needs no download. A failure does
 * not fail the installation: an operator may bring a server, and the first start tries again.
 */
import { findNatsServer, INSTALLED_NATS_FOLDERS } from './nats/binary.ts'

/** A production image has no engines and needs none. */
const wantsEngines = !(process.env.npm_config_omit ?? '').split(/[\s,]+/).includes('optional')

if (wantsEngines) {
  try {
    await findNatsServer(INSTALLED_NATS_FOLDERS)
  } catch (error) {
    process.stderr.write(`tollgate: ${error instanceof Error ? error.message : error}\n`)
  }
}
