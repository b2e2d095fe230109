/** The fields that keys and management tokens share. */
import { useQuery } from '@tanstack/react-query'
import { catalogQuery } from '../api/catalog.ts'
import { nameInZone } from '../format.ts'
import { t } from '../i18n.ts'
import { CheckField, Field } from '../ui/form.tsx'
import { MultiSelect } from '../ui/multi-select.tsx'

interface TextProps {
  readonly name?: string
  readonly value: string
  onText(text: string): void
}

export const ExpiresField = (props: TextProps) => (
  <Field
    label={nameInZone(t('Expires'))}
    hint={t('Refused from this time on. Leave empty for no expiry.')}
    type="datetime-local"
    {...props}
  />
)

export const ProgramNameField = (props: TextProps) => (
  <Field
    label={t('Name')}
    hint={t('What it is for, such as a program or a machine.')}
    required
    maxLength={100}
    {...props}
  />
)

interface ModelsFieldProps {
  readonly name?: string
  /** Null for every model. */
  readonly value: readonly string[] | null
  onChoose(models: string[] | null): void
}

export function ModelsField({ name = 'allowed_models', value, onChoose }: ModelsFieldProps) {
  const { data: models = [] } = useQuery(catalogQuery)
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 font-medium text-sm">{t('Models')}</legend>
      <CheckField
        label={t('All models, including ones added later')}
        checked={value === null}
        onCheck={(isEvery) => onChoose(isEvery ? null : [])}
      />
      {value !== null && (
        <MultiSelect
          label={t('Only these models')}
          name={name}
          options={new Map(models.map(({ id, display_name }) => [id, display_name ?? id]))}
          chosen={value}
          onChoose={onChoose}
        />
      )}
    </fieldset>
  )
}
