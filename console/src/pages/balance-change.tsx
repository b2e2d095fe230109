/** One rule for every operation that changes a balance: it says what the balance becomes, and asks before it is booked. */
import { type ReactNode, useState } from 'react'
import { type Credits, parseCredits, printCredits } from '../../../schemas/money.ts'
import { readTyped } from '../../../src/core/confirmation.ts'
import { LIVE_MS, useGet } from '../api/read.ts'
import { printExact } from '../format.ts'
import { t } from '../i18n.ts'
import { ConfirmDialog, Dialog } from '../ui/dialog.tsx'
import { QueryState } from '../ui/states.tsx'

export function parseOrNull(text: string): Credits | null {
  try {
    return parseCredits(text)
  } catch {
    return null
  }
}

interface BalanceChange {
  readonly accountId: string
  /** Null while what is typed is no amount. */
  readonly change: Credits | null
  readonly operation: 'adjust' | 'refund' | 'refundPayment'
  /** The amount of the form: where much is at stake it is typed twice. */
  readonly amount: string
  /** True if no other entry can undo it. */
  readonly isFinal?: boolean
  /** Of the question. */
  readonly title: string
  readonly submit: string
  /** Books the change. */
  readonly book: {
    readonly error: Error | null
    readonly isPending: boolean
    mutateAsync(): Promise<unknown>
    reset(): void
  }
}

/** Returns what the form sends, what it says of the balance, and the question that it asks. */
export function useBalanceChange(wanted: BalanceChange): {
  readonly sends: Omit<BalanceChange['book'], 'reset'>
  readonly note: ReactNode
  readonly question: ReactNode
} {
  const { accountId, change, operation, amount, isFinal = false, title, submit, book } = wanted
  // The page around the form may have just read it.
  const account = useGet('showAccount', { id: accountId }, { staleTime: LIVE_MS })
  const rules = useGet('showWalletRules', {})
  const [asking, setAsking] = useState<PromiseWithResolvers<unknown> | null>(null)
  /** Resolves once the change is booked. A question that is closed before leaves it open: the form keeps its draft. */
  const ask = () => {
    book.reset()
    const begun = Promise.withResolvers<unknown>()
    setAsking(begun)
    return begun.promise
  }
  const sends = { error: asking === null ? book.error : null, isPending: book.isPending, mutateAsync: ask }
  const before = account.data && parseCredits(account.data.wallet.balance)
  if (before === undefined || rules.data === undefined || change === null) {
    const query = before === undefined ? account : rules
    const waits = (
      <Dialog title={title} onClose={() => setAsking(null)}>
        <QueryState query={query} rows={3} />
      </Dialog>
    )
    return { sends, note: null, question: asking !== null && waits }
  }
  const after = before + change
  const limit = rules.data.confirm_above
  const isLarge = (change < 0n ? -change : change) > parseCredits(limit)
  const shown = t('The balance goes from {before} to {after} credits.', {
    before: printExact(printCredits(before)),
    after: printExact(printCredits(after)),
  })
  const effects = [
    shown,
    ...(after < 0n ? [t('Calls are refused while the balance is below zero.')] : []),
    ...(isFinal ? [t('This cannot be undone, so type the amount.')] : []),
    ...(isLarge && !isFinal
      ? [t('This is more than {limit} credits, so type the amount.', { limit: printExact(limit) })]
      : []),
  ]
  const confirm = async () => {
    asking?.resolve(await book.mutateAsync())
    setAsking(null)
  }
  return {
    sends,
    note: change !== 0n && <p className="text-quiet text-sm">{shown}</p>,
    question: asking !== null && (
      <ConfirmDialog
        title={title}
        effects={effects}
        {...((isFinal || isLarge) && { name: readTyped(operation, { amount }) })}
        submit={submit}
        sends={{ ...book, mutateAsync: confirm }}
        onClose={() => setAsking(null)}
      />
    ),
  }
}
