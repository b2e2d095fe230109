/** The return from the page of the payment provider that saved a card. */

import { useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { useGet } from '../../api/read.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'

/** The webhook of the provider may come after the customer. */
const POLL_MS = 1_000

export function SavedCard({ accountId }: { readonly accountId: string }) {
  const queries = useQueryClient()
  const changeSearch = useChangeSearch()
  const cards = useGet(
    'listCards',
    { account_id: accountId },
    { refetchInterval: ({ state: { data } }) => (data?.data.length ? false : POLL_MS) },
  )
  const [newest] = cards.data?.data ?? []
  const last4 = newest?.last4
  useEffect(() => {
    if (last4 !== undefined)
      void queries.invalidateQueries({ queryKey: ['/automatic-top-up' satisfies OperationPath] })
  }, [last4, queries])
  return (
    <div
      role="status"
      className="mb-5 flex flex-wrap items-center gap-3 rounded-lg border border-line bg-surface p-4"
    >
      <p className="grow">
        {last4 === undefined
          ? t('The card appears here as soon as the provider confirms it.')
          : t('The card {last4} is saved. It pays automatic top-ups.', { last4 })}
      </p>
      <Button kind="quiet" onClick={() => changeSearch({ saved: undefined }, { isReplaced: true })}>
        {t('Close')}
      </Button>
    </div>
  )
}
