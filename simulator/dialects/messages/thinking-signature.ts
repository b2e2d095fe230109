/** Signatures of reasoning, as the messages interface gives and checks them: reasoning comes back unchanged or not at all. */

import { createHash } from 'node:crypto'

const SECRET = 'simulated thinking'
const SEALED_PREFIX = 'sealed by the simulated provider: '

export function signatureOf(thinking: string): string {
  return createHash('sha512').update(`${SECRET}\n${thinking}`).digest('base64')
}

/** Reasoning that only the provider can read. */
export function sealed(id: string): string {
  return Buffer.from(SEALED_PREFIX + id).toString('base64')
}

export function isSealed(data: string): boolean {
  return Buffer.from(data, 'base64').toString('utf8').startsWith(SEALED_PREFIX)
}
