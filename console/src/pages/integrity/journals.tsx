/** Journals of gateways that are not drained, and the end of those whose machine never comes back. */

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmButton, Dialog } from '../../ui/dialog.tsx'
import { DialogForm, Field } from '../../ui/form.tsx'
import { Badge, EmptyState, Panel, QueryState } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Money, Time } from '../../ui/text.tsx'

type Journal = AnswerOf<'listJournals'>['data'][number]

const PATH: OperationPath = '/journals'
const REFRESH_MS = 5_000
const SILENT_TOO_LONG_MS = 5 * 60_000

const isSilentTooLong = ({ state, last_heartbeat }: Journal): boolean =>
  state === 'silent' && Date.now() - Date.parse(last_heartbeat) > SILENT_TOO_LONG_MS

function ImportDialog({ onClose }: { onClose(): void }) {
  const [directory, setDirectory] = useState('')
  const importing = useMutation({
    meta: { changes: [PATH] },
    mutationFn: () => request('importJournal', { directory }),
  })
  const { data: done } = importing
  return (
    <Dialog
      title={t('Import a journal')}
      description={t('Books the calls of a journal that is found on a disk, each once, however often.')}
      onClose={onClose}
    >
      <DialogForm
        sends={importing}
        act={t('Import')}
        cancel={done ? t('Close') : t('Cancel')}
        onClose={onClose}
      >
        <Field
          label={t('Folder on the machine of this gateway')}
          hint={t('The folder with the file id, such as /mnt/data/journal/gateway-0.')}
          required
          value={directory}
          onText={setDirectory}
        />
        {done && (
          <p role="status">
            {t('{booked} calls booked, {known} were booked before, {rest} are left.', {
              booked: done.booked_calls,
              known: done.known_calls,
              rest: done.rest_calls,
            })}
          </p>
        )}
      </DialogForm>
    </Dialog>
  )
}

const AbandonButton = ({ id, node }: Journal) => (
  <ConfirmButton
    title={t('Abandon {name}', { name: id })}
    description={t(
      'Its calls that are known become interrupted rows without a charge, and their reservations end. Calls that only the disk of {node} knows are lost.',
      { node },
    )}
    name={id}
    act={t('Abandon')}
    meta={{ done: t('Journal abandoned'), changes: [PATH] }}
    onConfirm={() => request('abandonJournal', { id })}
  />
)

export function Journals({ mayAct }: { readonly mayAct: boolean }) {
  const [isImporting, setImporting] = useState(false)
  const list = useGet('listJournals', {}, { refetchInterval: REFRESH_MS })
  const columns: Column<Journal>[] = [
    { name: t('Journal'), cell: ({ id }) => <code className="font-mono text-xs">{id}</code> },
    { name: t('Machine'), cell: ({ node, directory }) => <span title={directory}>{node}</span> },
    {
      name: t('State'),
      cell: (journal) =>
        journal.state === 'live' ? (
          <Badge tone="good">{t('In use')}</Badge>
        ) : (
          <Badge tone={isSilentTooLong(journal) ? 'bad' : 'warn'}>{t('Silent')}</Badge>
        ),
    },
    { name: t('Last heartbeat'), cell: ({ last_heartbeat }) => <Time at={last_heartbeat} /> },
    {
      name: t('Calls under way'),
      isNumber: true,
      cell: ({ open_calls, open_estimate }) => (
        <span title={t('at most {amount} credits', { amount: open_estimate })}>
          {open_calls.toLocaleString('en')}
        </span>
      ),
    },
    {
      name: t('Unbooked calls'),
      isNumber: true,
      cell: ({ unbooked_calls }) => unbooked_calls.toLocaleString('en'),
    },
    {
      name: t('Unbooked credits'),
      isNumber: true,
      cell: ({ unbooked_cost }) => <Money amount={unbooked_cost} />,
    },
    {
      name: t('Actions'),
      cell: (journal) => mayAct && journal.state === 'silent' && <AbandonButton {...journal} />,
    },
  ]
  const journals = list.data?.data ?? []
  return (
    <>
      {journals.filter(isSilentTooLong).map(({ id, node }) => (
        <p key={id} role="alert" className="rounded-md border border-bad bg-bad-wash p-3">
          {t(
            'The gateway with the journal {id} on {node} has been silent for more than 5 minutes. Start it again, import its journal from the disk, or abandon it.',
            { id, node },
          )}
        </p>
      ))}
      <Panel title={t('Journals that are not drained')}>
        <QueryState query={list} />
        {list.isSuccess && journals.length === 0 && <EmptyState title={t('Every journal is drained.')} />}
        {journals.length > 0 && (
          <Table
            caption={t('Journals that are not drained')}
            columns={columns}
            rows={journals}
            keyOf={({ id }) => id}
          />
        )}
        {mayAct && (
          <div className="border-line border-t p-3">
            <Button onClick={() => setImporting(true)}>{t('Import a journal')}</Button>
          </div>
        )}
      </Panel>
      {isImporting && <ImportDialog onClose={() => setImporting(false)} />}
    </>
  )
}
