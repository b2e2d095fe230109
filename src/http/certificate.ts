/** Checks the certificate of the listener before the server loads it: the server reports no broken one. */
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

/** Returns why the pair, files in PEM, cannot serve TLS; null where it can. */
export function findTlsProblem({
  cert,
  key,
}: {
  readonly cert: string
  readonly key: string
}): string | null {
  try {
    createSecureContext({ cert: readFileSync(cert), key: readFileSync(key) })
    return null
  } catch (error) {
    return (error as Error).message
  }
}
