/** A repeated intent is carried out and charged once, whatever nodes it was sent to; tasks end, and cost what they made. */
import type { CallLine } from '../history.ts'
import type { Run } from './check.ts'
import { type Problems, problem } from './problems.ts'

const FINAL = ['succeeded', 'failed', 'expired', 'cancelled', 'refused']

export function checkIntents(run: Run): Problems {
  return [...checkChat(run), ...checkTasks(run)]
}

/**
 * Each intent of chat is the only one of its key. An answer that broke off is charged for what was sent, and frees the
 * Idempotency-Key (docs/api-rules.md, "Idempotency"): the whole answer is charged once.
 */
function checkChat({ lines, tables }: Run): Problems {
  const intents = Map.groupBy(
    lines.call.filter(({ kind, intent }) => kind === 'chat' && intent !== null),
    ({ keyId }) => keyId,
  )
  const chargedTwice: unknown[] = []
  const differing: unknown[] = []
  const unlike: unknown[] = []
  for (const [keyId, sent] of intents) {
    const whole = sent.filter(isAnswer)
    const answers = new Set(whole.map(({ answerId }) => answerId))
    const requests = new Set(whole.map(({ requestId }) => requestId))
    const charged = tables.rows.filter(
      ({ key_id, cost, status, request_id }) =>
        key_id === keyId && cost > 0 && (status === 'success' || requests.has(request_id)),
    )
    if (charged.length > 1) chargedTwice.push({ intent: sent[0]?.intent, charged, sent })
    if (answers.size > 1) differing.push({ intent: sent[0]?.intent, answers: [...answers] })
    if (answers.size === 1 && charged.length !== 1) unlike.push({ intent: sent[0]?.intent, sent })
  }
  return [
    ...problem('Intents that were charged twice', chargedTwice),
    ...problem('Intents that were answered differently', differing),
    ...problem('Intents that were answered and not charged', unlike),
  ]
}

const isAnswer = ({ status, end }: CallLine): boolean => status === 200 && end === 'complete'

function checkTasks({ lines, tables }: Run): Problems {
  const entries = new Map(tables.entries.map(({ ref, amount }) => [ref, amount]))
  const tasks = new Map(tables.tasks.map((task) => [task.id, task]))
  const accepted = lines.call.filter(
    ({ kind, status, end, answerId }) => kind === 'image' && status === 200 && end === 'complete' && answerId,
  )
  const named = Map.groupBy(
    tables.tasks.filter(({ intent, state }) => intent !== null && state === 'succeeded'),
    ({ account_id, intent }) => `${account_id} ${intent}`,
  )
  const priceOf = (model: string) => lines.price.find((price) => price.model === model)?.image ?? 0
  return [
    ...problem(
      'Tasks that were accepted and are not there',
      accepted.filter(({ answerId }) => !tasks.has(answerId!)),
    ),
    ...problem(
      'Tasks that have not ended',
      tables.tasks.filter(({ state }) => !FINAL.includes(state)),
    ),
    ...problem(
      'Tasks whose entries are not minus their charge',
      tables.tasks.filter(({ id, cost }) => (entries.get(id) ?? 0) !== 0 - (cost ?? 0)),
    ),
    ...problem(
      'Tasks that cost something else than their price',
      tables.tasks.filter(
        ({ state, model, cost }) => (cost ?? 0) !== (state === 'succeeded' ? priceOf(model) : 0),
      ),
    ),
    ...problem(
      'Intents that made two tasks',
      [...named.values()].filter((same) => same.length > 1),
    ),
    ...problem(
      'Tasks that the provider made twice',
      lines.provider.flatMap(({ madeTwice }) => madeTwice),
    ),
    ...problem('The provider was not asked what it has seen', lines.provider.length === 0 ? [''] : []),
  ]
}
