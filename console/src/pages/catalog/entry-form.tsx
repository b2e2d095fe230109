/** Forms of one model and one channel. They change the text beside them, field by field. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, type InputOf, request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { CheckFields, DialogForm, Field, SelectField, TextAreaField } from '../../ui/form.tsx'
import { fitsForm, parseField, printField, readField } from './field-text.ts'
import { type EntryList, type FieldSpec, listGroups, ONLY_IN_TEXT } from './fields.ts'

export type Entry = AnswerOf<'editConfiguration'>['models'][number]
type Edit = NonNullable<InputOf<'editConfiguration'>['edits']>[number]
export type Place = NonNullable<AnswerOf<'editConfiguration'>['found']>

const toName = ({ path }: Pick<FieldSpec, 'path'>): string => path.join('.')

interface EntryFormProps {
  readonly list: EntryList
  /** Null: a new entry. */
  readonly entry: Entry | null
  /** The text that is edited. */
  readonly text: string
  onEdited(text: string): void
  /** Shows a place of the text. */
  onOpen(place: Place): void
  onClose(): void
}

/** The fields that only the text has, each with the way to its line. */
function OnlyInText({
  list,
  id,
  text,
  paths,
  isDisabled,
  onFound,
}: {
  readonly list: EntryList
  readonly id: string
  readonly text: string
  readonly paths: readonly (readonly string[])[]
  readonly isDisabled: boolean
  onFound(place: Place): void
}) {
  const find = useMutation({
    mutationFn: (path: readonly string[]) =>
      request('editConfiguration', { text, find: { list, id, path: [...path] } }),
    onSuccess: ({ found }) => found && onFound(found),
  })
  return (
    <section>
      <h3 className="pb-1 font-medium text-sm">{t('Only in the text')}</h3>
      <div className="flex flex-wrap gap-2">
        {paths.map((path) => (
          <Button
            key={path.join('.')}
            disabled={isDisabled}
            isBusy={find.isPending}
            onClick={() => find.mutate(path)}
          >
            {path.join('.')}
          </Button>
        ))}
      </div>
    </section>
  )
}

export function EntryForm({ list, entry, text, onEdited, onOpen, onClose }: EntryFormProps) {
  const groups = listGroups(list).map(({ title, fields }) => ({
    title,
    fields: fields.filter((spec) => fitsForm(spec, readField(entry, spec.path))),
  }))
  const specs = groups.flatMap(({ fields }) => fields)
  const others = listGroups(list)
    .flatMap(({ fields }) => fields.map(({ path }) => path))
    .filter((path) => !specs.some((spec) => toName(spec) === toName({ path })))
  const id = entry === null ? null : String(entry.id)
  const form = useFields<Record<string, string>>(null, () => ({
    id: id ?? '',
    ...Object.fromEntries(
      specs.map((spec) => [toName(spec), printField(readField(entry, spec.path), spec.kind)]),
    ),
  }))
  const { values, saved } = form
  const makeEdits = (): Edit[] => {
    const changed = specs.filter((spec) => values[toName(spec)] !== saved[toName(spec)])
    const changes = changed.map((spec) => ({
      path: [...spec.path],
      value: parseField(values[toName(spec)] ?? '', spec, readField(entry, spec.path)),
    }))
    if (id !== null) return [{ kind: 'change', list, id, changes }]
    const added = { id: (values.id ?? '').trim() }
    return [{ kind: 'add', list, entry: changes.reduce(setIn, added as Record<string, unknown>) }]
  }
  const edit = useMutation({
    mutationFn: () => request('editConfiguration', { text, edits: makeEdits() }),
    onSuccess: (edited) => {
      onEdited(edited.text)
      onClose()
    },
  })
  const what = list === 'models' ? t('Model') : t('Channel')
  return (
    <Dialog
      isWide
      title={id ?? t('Add: {what}', { what })}
      description={t('This changes the text. Nothing is applied before you have seen the difference.')}
      onClose={onClose}
    >
      <DialogForm sends={edit} fields={form} submit={t('Change the text')}>
        {id === null && <Field label={t('Id')} required {...form.field('id')} />}
        {groups.map(({ title, fields }, index) => (
          <details key={title} open={index === 0 || fields.some((spec) => saved[toName(spec)] !== '')}>
            <summary className="cursor-pointer pb-2 font-medium">{title}</summary>
            <div className="grid gap-3 sm:grid-cols-2">
              {fields.map((spec) => (
                <SpecField
                  key={toName(spec)}
                  spec={spec}
                  {...form.field(toName(spec))}
                  value={values[toName(spec)] ?? ''}
                />
              ))}
            </div>
          </details>
        ))}
        {id !== null && (
          <OnlyInText
            list={list}
            id={id}
            text={text}
            paths={[...ONLY_IN_TEXT[list], ...others]}
            isDisabled={form.isChanged}
            onFound={(place) => {
              onClose()
              onOpen(place)
            }}
          />
        )}
      </DialogForm>
    </Dialog>
  )
}

const setIn = (
  entry: Record<string, unknown>,
  { path: [name = '', ...rest], value }: { path: string[]; value: unknown },
): Record<string, unknown> => ({
  ...entry,
  [name]:
    rest.length === 0 ? value : setIn((entry[name] ?? {}) as Record<string, unknown>, { path: rest, value }),
})

interface SpecFieldProps {
  readonly spec: FieldSpec
  readonly name: string
  readonly value: string
  onText(text: string): void
}

function SpecField({ spec: { label, hint, kind, options }, ...field }: SpecFieldProps) {
  const [isOther] = useState(() => field.value !== '' && options?.includes(field.value) === false)
  if (kind === 'flag')
    return (
      <SelectField
        label={label}
        options={[
          ['', t('Default')],
          ['true', t('Yes')],
          ['false', t('No')],
        ]}
        {...field}
      />
    )
  if (kind === 'choices' || kind === 'features') {
    const chosen = field.value.split(', ').filter((one) => one !== '')
    return (
      <fieldset className="grid grid-cols-2 gap-1 sm:col-span-2 sm:grid-cols-3">
        <legend className="mb-1 font-medium text-sm">{label}</legend>
        <CheckFields
          options={[...new Set([...(options ?? []), ...chosen])].map((one) => [one, one] as const)}
          chosen={chosen}
          onChoose={(ticked) => field.onText(ticked.join(', '))}
        />
      </fieldset>
    )
  }
  if (options !== undefined && !isOther)
    return (
      <SelectField
        label={label}
        options={[['', '–'], ...options.map((one) => [one, one] as const)]}
        {...field}
      />
    )
  if (['lines', 'map', 'rows', 'records'].includes(kind))
    return (
      <div className="sm:col-span-2">
        <TextAreaField isCode label={label} hint={hint} rows={3} {...field} />
      </div>
    )
  return (
    <Field
      label={label}
      hint={hint}
      inputMode={kind === 'count' ? 'numeric' : undefined}
      autoComplete="off"
      {...field}
    />
  )
}
