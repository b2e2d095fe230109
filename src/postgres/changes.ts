import { CHANGES_CHANNEL } from '../../schemas/events/event.ts'
import type { Sql } from './connection.ts'
import type { ChangeKind, ChangeListener } from './types.ts'

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
