/** The notes on the status page: an operator posts one, adds what is new, and ends it. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { parseFieldTime, readZoneName } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Dialog, DialogButton } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { DialogForm, Field, SelectField, TextAreaField } from '../../ui/form.tsx'
import { listNames } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { TextLink } from '../../ui/text.tsx'
import { NoteHead, nameSeverities } from '../status/notes.tsx'
import { ModelsField } from '../token-fields.tsx'

type Note = AnswerOf<'listStatusNotes'>['data'][number]

const CHANGES = ['/installation/status-notes'] as const
const MAX_TEXT_CHARS = 2_000

interface NewNote {
  readonly text: string
  readonly severity: Note['severity']
  readonly models: readonly string[] | null
  readonly begins_at: string
  readonly ends_at: string
}

const NEW_NOTE: NewNote = { text: '', severity: 'info', models: null, begins_at: '', ends_at: '' }

function PostDialog({ onClose }: { onClose(): void }) {
  const form = useFields<NewNote>('new status note', NEW_NOTE)
  const { values, field, set } = form
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const post = useMutation({
    meta: { done: t('Note posted'), changes: CHANGES },
    mutationFn: () =>
      request(
        'postStatusNote',
        {
          text: values.text,
          severity: values.severity,
          models: values.models && [...values.models],
          begins_at: parseFieldTime(values.begins_at) ?? undefined,
          ends_at: parseFieldTime(values.ends_at),
        },
        { idempotencyKey },
      ),
    onSuccess: onClose,
  })
  return (
    <Dialog
      title={t('Post a note')}
      description={t('Everybody reads it on the status page, even without an account.')}
      onClose={onClose}
    >
      <DialogForm sends={post} fields={form} submit={t('Post')}>
        <TextAreaField label={t('Text')} rows={4} required maxLength={MAX_TEXT_CHARS} {...field('text')} />
        <SelectField label={t('Severity')} options={listNames(nameSeverities())} {...field('severity')} />
        <ModelsField name="models" value={values.models} onChoose={(models) => set({ models })} />
        <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
          <Field
            label={t('Begins')}
            hint={t('Leave empty to begin now. Times are in {zone}.', { zone: readZoneName() })}
            type="datetime-local"
            {...field('begins_at')}
          />
          <Field
            label={t('Planned end')}
            hint={t('Leave empty if it is not known.')}
            type="datetime-local"
            {...field('ends_at')}
          />
        </div>
      </DialogForm>
    </Dialog>
  )
}

interface UpdateDialogProps {
  readonly note: Note
  readonly isLast: boolean
  onClose(): void
}

/** Adds an update to a note; the last one ends it. */
function UpdateDialog({ note: { id, text: noted, severity }, isLast, onClose }: UpdateDialogProps) {
  const form = useFields(`status note ${id} ${isLast}`, { text: '', severity })
  const { values, field } = form
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const update = useMutation({
    meta: { done: isLast ? t('Note resolved') : t('Update added'), changes: CHANGES },
    mutationFn: () =>
      isLast
        ? request('resolveStatusNote', { id, text: values.text }, { idempotencyKey })
        : request('updateStatusNote', { id, ...values }, { idempotencyKey }),
    onSuccess: onClose,
  })
  return (
    <Dialog
      title={isLast ? t('Resolve the note') : t('Update the note')}
      description={noted}
      onClose={onClose}
    >
      <DialogForm sends={update} fields={form} submit={isLast ? t('Resolve') : t('Add')}>
        <TextAreaField
          label={isLast ? t('Last update') : t('What is new')}
          hint={isLast ? t('For customers. It may be empty.') : undefined}
          rows={3}
          required={!isLast}
          maxLength={MAX_TEXT_CHARS}
          {...field('text')}
        />
        {!isLast && (
          <SelectField label={t('Severity')} options={listNames(nameSeverities())} {...field('severity')} />
        )}
      </DialogForm>
    </Dialog>
  )
}

export function StatusNotes({ mayChange }: { readonly mayChange: boolean }) {
  const list = useList('listStatusNotes', {})
  const columns: Column<Note>[] = [
    {
      name: t('Note'),
      isText: true,
      cell: (note) => (
        <span className="flex max-w-prose flex-col items-start gap-1">
          <NoteHead {...note} />
          <span className="line-clamp-3 break-words">{note.text}</span>
        </span>
      ),
    },
    {
      name: t('Actions'),
      cell: (note) =>
        mayChange && (
          <span className="flex gap-1">
            <DialogButton dialog={(onClose) => <UpdateDialog note={note} isLast={false} onClose={onClose} />}>
              {t('Update')}
            </DialogButton>
            <DialogButton dialog={(onClose) => <UpdateDialog note={note} isLast onClose={onClose} />}>
              {t('Resolve')}
            </DialogButton>
          </span>
        ),
    },
  ]
  return (
    <ListPanel
      title={t('Notes on the status page')}
      list={list}
      columns={columns}
      empty={t('There are no open notes.')}
      foot={
        <span className="flex flex-wrap items-center gap-4">
          {mayChange && (
            <DialogButton dialog={(onClose) => <PostDialog onClose={onClose} />}>
              {t('Post a note')}
            </DialogButton>
          )}
          <TextLink to="/status">{t('Status page')}</TextLink>
        </span>
      }
    />
  )
}
