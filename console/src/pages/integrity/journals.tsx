/** Journals that are not drained: import or abandon those of a lost machine. */

import { useMutation } from '@tanstack/react-query'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Action, Dialog, DialogButton } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { DialogForm, Field } from '../../ui/form.tsx'
import { Badge } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Code, Money, Time } from '../../ui/text.tsx'

type Journal = AnswerOf<'listJournals'>['data'][number]

const CHANGED: readonly OperationPath[] = ['/journals']
const SILENT_TOO_LONG_MS = 5 * 60_000

const isSilentTooLong = ({ state, last_heartbeat }: Journal): boolean =>
  state === 'silent' && Date.now() - Date.parse(last_heartbeat) > SILENT_TOO_LONG_MS

function ImportDialog({ onClose }: { onClose(): void }) {
  const form = useFields('journal import', { directory: '' })
  const importing = useMutation({
    meta: { changes: CHANGED },
    mutationFn: () => request('importJournal', form.values),
  })
  const { data: done } = importing
  return (
    <Dialog
      title={t('Import a journal')}
      description={t(
        'Books the calls of a journal on a disk. Each call is booked once, however often you import it.',
      )}
      onClose={onClose}
    >
      <DialogForm
        sends={importing}
        fields={form}
        submit={t('Import')}
        cancel={done ? t('Close') : t('Cancel')}
      >
        <Field
          label={t('Folder on the machine of this gateway')}
          hint={t('The folder that contains the file id, such as /mnt/data/journal/gateway-0.')}
          required
          {...form.field('directory')}
        />
        {done && (
          <p role="status">
            {t('{booked} calls booked, {known} were already booked, {rest} remain.', {
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
  <Action
    kind="quiet"
    confirm={{
      title: t('Abandon {name}', { name: id }),
      description: t(
        'Its known calls become interrupted rows without a charge, and their reservations end. Calls that only the disk of {node} knows are lost.',
        { node },
      ),
      name: readTyped('abandonJournal', { id }),
      submit: t('Abandon'),
    }}
    done={t('Journal abandoned')}
    changes={CHANGED}
    run={() => request('abandonJournal', { id })}
  >
    {t('Abandon')}
  </Action>
)

export function Journals({ mayChange }: { readonly mayChange: boolean }) {
  const list = useGet('listJournals', {})
  const columns: Column<Journal>[] = [
    { name: t('Journal'), cell: ({ id }) => <Code>{id}</Code> },
    { name: t('Machine'), cell: ({ node, directory }) => <span title={directory}>{node}</span> },
    {
      name: t('Status'),
      cell: (journal) =>
        journal.state === 'live' ? (
          <Badge tone="good">{t('In use')}</Badge>
        ) : (
          <Badge tone={isSilentTooLong(journal) ? 'bad' : 'warn'}>{t('Silent')}</Badge>
        ),
    },
    { name: t('Last heartbeat'), isTime: true, cell: ({ last_heartbeat }) => <Time at={last_heartbeat} /> },
    {
      name: t('Calls in progress'),
      isNumber: true,
      cell: ({ open_calls, open_estimate }) => (
        <span title={t('at most {amount} credits', { amount: open_estimate })}>
          {printNumber(open_calls)}
        </span>
      ),
    },
    {
      name: t('Unbooked calls'),
      isNumber: true,
      cell: ({ unbooked_calls }) => printNumber(unbooked_calls),
    },
    {
      name: t('Unbooked credits'),
      isNumber: true,
      cell: ({ unbooked_cost }) => <Money amount={unbooked_cost} />,
    },
    {
      name: t('Actions'),
      cell: (journal) => mayChange && journal.state === 'silent' && <AbandonButton {...journal} />,
    },
  ]
  const journals = list.data?.data
  return (
    <>
      {journals?.filter(isSilentTooLong).map(({ id, node }) => (
        <p key={id} role="alert" className="rounded-md border border-bad bg-bad-wash p-3">
          {t(
            'The gateway with the journal {id} on {node} has been silent for more than 5 minutes. Start it again, import its journal from the disk, or abandon it.',
            { id, node },
          )}
        </p>
      ))}
      <ListPanel
        title={t('Journals that are not drained')}
        list={list}
        rows={journals}
        columns={columns}
        empty={t('Every journal is drained.')}
        foot={
          mayChange && (
            <DialogButton dialog={(onClose) => <ImportDialog onClose={onClose} />}>
              {t('Import a journal')}
            </DialogButton>
          )
        }
      />
    </>
  )
}
