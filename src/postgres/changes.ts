/** Notifies of changes that other processes make in PostgreSQL. */
import { CHANGES_CHANNEL } from '../../schemas/events/event.ts'
import type { Sql } from './connection.ts'
import { onPool, type Pools } from './repository.ts'

export type ChangeKind = 'key' | 'account' | 'wallet' | 'agent' | 'channel'

export interface ChangeListener {
  /** Called with the id of a key, an account, an agent or a channel. The change may already be known. */
  onChange(kind: ChangeKind, id: string): void
  /** Changes may have been missed: whatever was read before must be read again. */
  onReset(): void
}

const KINDS: readonly string[] = ['key', 'account', 'wallet', 'agent', 'channel'] satisfies ChangeKind[]

function isKind(text: string): text is ChangeKind {
  return KINDS.includes(text)
}

/**
 * Listens for changes; resolves with the function that stops it. Survives the loss of the connection: the client then
 * listens again by itself.
 */
export async function listenChanges(
  sql: Sql,
  { onChange, onReset }: ChangeListener,
): Promise<() => Promise<void>> {
  let isListening = false
  const onNotify = (payload: string) => {
    const [kind = '', ...id] = payload.split(':')
    // Something else on the channel, from a newer version: whatever it means, reading again is right.
    if (isKind(kind)) onChange(kind, id.join(':'))
    else onReset()
  }
  const onListening = () => {
    if (isListening) onReset()
    isListening = true
  }
  const { unlisten } = await sql.listen(CHANGES_CHANNEL, onNotify, onListening)
  return async () => {
    await unlisten()
  }
}

export type Changes = ReturnType<typeof openChanges>

export const openChanges = ({ session }: Pools) => onPool(session, { listenChanges })
