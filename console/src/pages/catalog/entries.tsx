/** The models and channels of the text, each with its form. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { FormError, Panel, QueryState } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { type Entry, EntryForm, type Place } from './entry-form.tsx'
import type { EntryList } from './fields.ts'

interface EntriesProps {
  readonly text: string
  onEdited(text: string): void
  /** Shows a place of the text. */
  onOpen(place: Place): void
}

export function Entries({ text, onEdited, onOpen }: EntriesProps) {
  const [open, setOpen] = useState<{ readonly list: EntryList; readonly entry: Entry | null } | null>(null)
  const read = useQuery({
    queryKey: ['configuration entries', text],
    queryFn: ({ signal }) => request('editConfiguration', { text }, { signal }),
    placeholderData: (before) => before,
  })
  const remove = useMutation({
    mutationFn: ({ list, id }: { readonly list: EntryList; readonly id: string }) =>
      request('editConfiguration', { text, edits: [{ kind: 'remove', list, id }] }),
    onSuccess: (edited) => onEdited(edited.text),
  })
  if (!read.data) return <QueryState query={read} rows={4} />
  const lists = [
    ['models', t('Models'), t('Add a model')],
    ['channels', t('Channels'), t('Add a channel')],
  ] as const
  return (
    <>
      <FormError error={remove.error} />
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-2">
        {lists.map(([list, title, add]) => (
          <Panel key={list} title={title}>
            <Table
              caption={title}
              rows={read.data[list]}
              toKey={({ id }) => String(id)}
              columns={[
                { name: t('Id'), cell: ({ id }) => <span className="font-medium">{String(id)}</span> },
                {
                  name: t('Actions'),
                  cell: (entry) => (
                    <span className="flex gap-1">
                      <Button kind="quiet" onClick={() => setOpen({ list, entry })}>
                        {t('Edit')}
                      </Button>
                      <Button
                        kind="quiet"
                        isBusy={remove.isPending}
                        onClick={() => remove.mutate({ list, id: String(entry.id) })}
                      >
                        {t('Remove')}
                      </Button>
                    </span>
                  ),
                },
              ]}
            />
            <div className="border-line border-t p-3">
              <Button onClick={() => setOpen({ list, entry: null })}>{add}</Button>
            </div>
          </Panel>
        ))}
      </div>
      {open && (
        <EntryForm {...open} text={text} onEdited={onEdited} onOpen={onOpen} onClose={() => setOpen(null)} />
      )}
    </>
  )
}
