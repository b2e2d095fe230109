/** Notifies of changes that other processes make in PostgreSQL. */
import { CHANGES_CHANNEL } from '../../schemas/events/event.ts'
import type { Sql } from './connection.ts'
import { onPool, type Pools } from './repository.ts'

const KINDS = ['key', 'account', 'wallet', 'agent', 'channel'] as const
export type ChangeKind = (typeof KINDS)[number]

interface ChangeListener {
  /** Called with the id of a key, an account, an agent or a channel. The change may already be known. */
  onChange(kind: ChangeKind, id: string): void
  /** Changes may have been missed: whatever was read before must be read again. */
  onReset(): void
}

/**
 * Listens for changes; resolves with the function that stops it. Survives the loss of the connection: the client then
 * listens again by itself.
 */
async function listenChanges(sql: Sql, { onChange, onReset }: ChangeListener): Promise<() => Promise<void>> {
  let isListening = false
  const onNotify = (payload: string) => {
    const [name, ...id] = payload.split(':')
    const kind = KINDS.find((known) => known === name)
    // Something else on the channel, from a newer version: whatever it means, reading again is right.
    if (kind === undefined) onReset()
    else onChange(kind, id.join(':'))
  }
  const onListening = () => {
    if (isListening) onReset()
    isListening = true
  }
  const { unlisten } = await sql.listen(CHANGES_CHANNEL, onNotify, onListening)
  return unlisten
}

export interface Changes {
  listen(listener: ChangeListener): Promise<() => Promise<void>>
}

export const openChanges = ({ session }: Pools): Changes => onPool(session, { listen: listenChanges })
