/** What other processes changed in PostgreSQL, as it is changed. */
import { CHANGES_CHANNEL } from '../../schemas/events/event.ts'
import type { Sql } from './connection.ts'
import { onPool, type Pools } from './repository.ts'

export type ChangeKind = 'key' | 'account' | 'wallet' | 'agent'

export interface ChangeListener {
  /** `id` is the key's, the account's or the agent's. May come for a change that is known already. */
  onChange(kind: ChangeKind, id: string): void
  /** Changes may have been missed: whatever was read before must be read again. */
  onReset(): void
}

const KINDS: readonly string[] = ['key', 'account', 'wallet', 'agent'] satisfies ChangeKind[]

function isKind(text: string): text is ChangeKind {
  return KINDS.includes(text)
}

/**
 * Ends with the function that stops listening. Survives the loss of the connection. The client listens again by
 * itself when its connection was lost.
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

export const openChanges = ({ main }: Pools) => onPool(main, { listenChanges })
