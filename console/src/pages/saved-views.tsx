/** Named filters of a page: choose, save, delete. They belong to the user, on every machine. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import type { OperationPath } from '../../../schemas/routes.ts'
import { type AnswerOf, request } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { FormError } from '../ui/states.tsx'

const NameDialog = lazy(async () => ({ default: (await import('../ui/name-dialog.tsx')).NameDialog }))

type View = AnswerOf<'listViews'>['data'][number]

interface SavedViewsProps {
  readonly page: 'calls' | 'all-calls' | 'usage' | 'tasks'
  /** The current search parameters that a view keeps. */
  readonly filters: Readonly<Record<string, string | undefined>>
}

/** Prints parameters in alphabetical order, so that equal filters are equal texts. */
const print = (filters: SavedViewsProps['filters']): string =>
  new URLSearchParams(
    Object.entries(filters)
      .filter((entry): entry is [string, string] => entry[1] !== undefined)
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  ).toString()

export function SavedViews({ page, filters }: SavedViewsProps) {
  const [isSaving, setSaving] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const queryKey = ['/me/views' satisfies OperationPath, { page }]
  const views = useGet('listViews', { page })
  const remove = useMutation({
    mutationFn: (name: string) => request('deleteView', { page, name }),
    onSuccess: (left) => queries.setQueryData(queryKey, left),
  })
  const query = print(filters)
  const save = async (name: string) => {
    queries.setQueryData(queryKey, await request('saveView', { page, name, query }))
    setSaving(false)
  }
  const open = (view: View) =>
    void navigate({
      to: '.',
      search: ({ account }) => ({
        account,
        ...Object.fromEntries(new URLSearchParams(view.query)),
      }),
    })
  const all = views.data?.data ?? []
  const isSaved = all.some((view) => view.query === query)
  if (all.length === 0 && query === '') return null
  return (
    <section aria-label={t('Saved views')} className="mb-3 flex flex-wrap items-center gap-2">
      {all.map((view) => (
        <span
          key={view.name}
          className={`inline-flex items-center rounded-full border text-sm ${view.query === query ? 'border-accent bg-accent-wash text-accent' : 'border-line bg-surface'}`}
        >
          <button
            type="button"
            aria-pressed={view.query === query}
            className="rounded-full py-1 pl-3 pr-1"
            onClick={() => open(view)}
          >
            {view.name}
          </button>
          <button
            type="button"
            aria-label={t('Delete the view {name}', { name: view.name })}
            className="rounded-full p-1.5 text-quiet hover:text-ink"
            onClick={() => remove.mutate(view.name)}
          >
            <X aria-hidden size={12} />
          </button>
        </span>
      ))}
      {query !== '' && !isSaved && (
        <Button kind="quiet" onClick={() => setSaving(true)}>
          {t('Save this view')}
        </Button>
      )}
      <FormError error={remove.error} />
      {isSaving && (
        <Suspense>
          <NameDialog
            title={t('Save this view')}
            hint={t('A view with the same name is replaced.')}
            maxLength={100}
            submit={t('Save')}
            onName={save}
            onClose={() => setSaving(false)}
          />
        </Suspense>
      )}
    </section>
  )
}
