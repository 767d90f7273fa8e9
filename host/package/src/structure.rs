//! The structure of a component, bounded while it is read: before it is validated, and long before it is compiled.
//!
//! What a validator and a compiler need for a component does not grow with its bytes alone. Two bytes call a function with
//! a thousand results; five bytes declare fifty thousand locals. [`read`] walks over a component and everything nested in
//! it once, in time that is linear in its bytes, and rejects what is over a [`Bound`]. The bounds are far above what
//! the engines of JavaScript and Python have that real features carry; the measured numbers stand beside them.
//!
//! What is within all bounds may still take the compiler long: that is what `sandbox::compiler` limits.

use wasmparser::{
    BlockType, CanonicalFunction, ComponentType, ComponentTypeDeclaration, CompositeInnerType, CoreType, Encoding,
    FunctionBody, InstanceTypeDeclaration, ModuleTypeDeclaration, Operator, Parser, Payload, RecGroup, TypeRef,
};

use crate::descriptor::SECTION;

/// Something of which a package has a bounded number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Components that stand in each other, the outermost one included.
    ComponentDepth,
    /// Components, over the package.
    Components,
    /// Core modules, over the package.
    Modules,
    /// Instances, of components and of core modules, over the package.
    Instances,
    /// Types that stand in other types, in one section of a component.
    NestedTypes,
    /// Types of components, and what is declared in them, over the package.
    ComponentTypes,
    /// Fields, cases or names of one type of a component, or parameters of a function's.
    Fields,
    /// Aliases, over the package.
    Aliases,
    /// Functions lifted and lowered, over the package.
    CanonicalFunctions,
    /// Imports, of components and of core modules, over the package.
    Imports,
    /// Exports, of components and of core modules, over the package.
    Exports,
    /// Custom sections, over the package.
    CustomSections,
    /// Bytes of one name.
    NameBytes,
    /// Types of core functions, over the package.
    CoreTypes,
    /// Parameters of one core function or block.
    Parameters,
    /// Results of one core function or block.
    Results,
    /// Functions, over the package.
    Functions,
    /// Bytes of one function.
    FunctionBytes,
    /// The squares of all functions' bytes, over the package.
    FunctionSquares,
    /// Locals of one function, without its parameters.
    Locals,
    /// Locals of all functions, over the package.
    AllLocals,
    /// Blocks of one function that stand in each other.
    BlockDepth,
    /// Targets of one branch table.
    BranchTargets,
    /// Values that cross the edges of blocks and calls of one function: parameters, results, and as many again for
    /// each target of a branch table.
    EdgeValues,
    /// The same, over the package.
    AllEdgeValues,
    /// Globals, over the package.
    Globals,
    /// Tables, over the package.
    Tables,
    /// Memories, over the package.
    Memories,
    /// Exception tags, over the package.
    Tags,
    /// Segments of elements, over the package.
    ElementSegments,
    /// Elements of all segments, over the package.
    Elements,
    /// Segments of data, over the package.
    DataSegments,
}

impl Bound {
    /// Every bound.
    pub const ALL: [Self; 32] = [
        Self::ComponentDepth,
        Self::Components,
        Self::Modules,
        Self::Instances,
        Self::NestedTypes,
        Self::ComponentTypes,
        Self::Fields,
        Self::Aliases,
        Self::CanonicalFunctions,
        Self::Imports,
        Self::Exports,
        Self::CustomSections,
        Self::NameBytes,
        Self::CoreTypes,
        Self::Parameters,
        Self::Results,
        Self::Functions,
        Self::FunctionBytes,
        Self::FunctionSquares,
        Self::Locals,
        Self::AllLocals,
        Self::BlockDepth,
        Self::BranchTargets,
        Self::EdgeValues,
        Self::AllEdgeValues,
        Self::Globals,
        Self::Tables,
        Self::Memories,
        Self::Tags,
        Self::ElementSegments,
        Self::Elements,
        Self::DataSegments,
    ];

    /// The largest number that is let through.
    pub const fn limit(self) -> u64 {
        match self {
            // The feature, and the adapters that its tools make. Each level could double the code to compile.
            Self::ComponentDepth => 2,
            Self::Components | Self::Modules => 128,
            Self::Instances => 512,
            // Readers of types recurse, on the stack.
            Self::NestedTypes => 512,
            Self::ComponentTypes | Self::Aliases | Self::CanonicalFunctions => 20_000,
            Self::Fields => 1_000,
            Self::Imports => 20_000,
            Self::Exports => 50_000,
            Self::CustomSections => 1_000,
            Self::NameBytes => 4_096,
            Self::CoreTypes => 10_000,
            Self::Parameters => 64,
            Self::Results => 16,
            Self::Functions => 100_000,
            // The time that compiling a function takes grows with the square of its bytes: these take half a minute.
            Self::FunctionBytes => 1 << 20,
            Self::FunctionSquares => 1 << 40,
            Self::Locals => 8_192,
            Self::AllLocals => 2_000_000,
            Self::BlockDepth => 2_048,
            Self::BranchTargets => 16_384,
            Self::EdgeValues => 1_000_000,
            Self::AllEdgeValues => 50_000_000,
            Self::Globals | Self::ElementSegments => 10_000,
            Self::DataSegments => 20_000,
            Self::Tables | Self::Memories | Self::Tags => 128,
            Self::Elements => 1_000_000,
        }
    }

    /// What it counts, as messages say it.
    pub const fn what(self) -> &'static str {
        match self {
            Self::ComponentDepth => "components that stand in each other",
            Self::Components => "components",
            Self::Modules => "core modules",
            Self::Instances => "instances",
            Self::NestedTypes => "types that stand in each other",
            Self::ComponentTypes => "component types",
            Self::Fields => "fields, cases or parameters in one component type",
            Self::Aliases => "aliases",
            Self::CanonicalFunctions => "lifted and lowered functions",
            Self::Imports => "imports",
            Self::Exports => "exports",
            Self::CustomSections => "custom sections",
            Self::NameBytes => "bytes in one name",
            Self::CoreTypes => "core types",
            Self::Parameters => "parameters in one core function type",
            Self::Results => "results in one core function type",
            Self::Functions => "functions",
            Self::FunctionBytes => "bytes in one function",
            Self::FunctionSquares => "as the sum of the squares of its functions' bytes",
            Self::Locals => "locals in one function",
            Self::AllLocals => "locals",
            Self::BlockDepth => "blocks that stand in each other in one function",
            Self::BranchTargets => "targets in one branch table",
            Self::EdgeValues => "values that cross blocks and calls in one function",
            Self::AllEdgeValues => "values that cross blocks and calls",
            Self::Globals => "globals",
            Self::Tables => "tables",
            Self::Memories => "memories",
            Self::Tags => "exception tags",
            Self::ElementSegments => "element segments",
            Self::Elements => "table elements",
            Self::DataSegments => "data segments",
        }
    }
}

/// Why a component's structure was rejected.
#[derive(Debug, thiserror::Error)]
pub enum StructureError {
    /// There is more of something than a package may have.
    #[error("has {found} {}; a package may have at most {}, so that compiling it stays cheap", bound.what(), bound.limit())]
    Over {
        /// Of what.
        bound: Bound,
        /// How many there are, at the least: what follows was not read.
        found: u64,
    },
    /// It holds what would let it take memory or time that no limit of the sandbox counts.
    #[error("{0}")]
    Forbidden(&'static str),
    /// It can't be parsed.
    #[error(transparent)]
    Malformed(#[from] wasmparser::BinaryReaderError),
}

/// What a component within all bounds holds.
#[derive(Debug, Default)]
pub struct Structure<'a> {
    /// The descriptors that it carries, itself or in anything nested.
    pub descriptors: Vec<&'a [u8]>,
    /// The names that the outermost component imports.
    pub imports: Vec<&'a str>,
    /// The names that it exports.
    pub exports: Vec<&'a str>,
}

/// Walks over a component. It is not validated: types and indices may be wrong.
///
/// # Errors
/// See [`StructureError`].
pub fn read(component: &[u8]) -> Result<Structure<'_>, StructureError> {
    walk(component, true)
}

/// The same without the bodies of functions, whose bounds are not looked at.
///
/// # Errors
/// See [`StructureError`].
pub(crate) fn outline(component: &[u8]) -> Result<Structure<'_>, StructureError> {
    walk(component, false)
}

fn walk(component: &[u8], bodies: bool) -> Result<Structure<'_>, StructureError> {
    let mut walk = Walk::default();
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        if bodies || !matches!(payload, Payload::CodeSectionEntry(_)) {
            walk.payload(component, payload)?;
        }
    }
    Ok(walk.structure)
}

/// How much there is of everything so far.
#[derive(Debug)]
struct Counts([u64; Bound::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; Bound::ALL.len()])
    }
}

impl Counts {
    /// That many more.
    fn add(&mut self, bound: Bound, more: u64) -> Result<(), StructureError> {
        let count = &mut self.0[bound as usize];
        *count = count.saturating_add(more);
        at_most(bound, *count)
    }
}

/// The number of one thing, where each is bounded by itself.
fn at_most(bound: Bound, found: u64) -> Result<(), StructureError> {
    if found > bound.limit() { Err(StructureError::Over { bound, found }) } else { Ok(()) }
}

fn length(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

/// The parameters and results of a core function. Both are small: see [`Bound::Parameters`].
#[derive(Debug, Clone, Copy, Default)]
struct Arity {
    parameters: u64,
    results: u64,
}

impl Arity {
    const fn sum(self) -> u64 {
        self.parameters + self.results
    }
}

/// What has been defined in the core module that is being read.
#[derive(Debug, Default)]
struct Module {
    /// By type index; `None` if the type is not of a function.
    types: Vec<Arity>,
    /// Type indices by function index.
    functions: Vec<u32>,
}

impl Module {
    /// A wrong index is for the validator to reject.
    fn type_at(&self, index: u32) -> Arity {
        self.types.get(index as usize).copied().unwrap_or_default()
    }

    fn function_at(&self, index: u32) -> Arity {
        self.functions.get(index as usize).map_or_else(Arity::default, |index| self.type_at(*index))
    }

    fn block(&self, kind: BlockType) -> Arity {
        match kind {
            BlockType::Empty => Arity::default(),
            BlockType::Type(_) => Arity { parameters: 0, results: 1 },
            BlockType::FuncType(index) => self.type_at(index),
        }
    }
}

#[derive(Debug, Default)]
struct Walk<'a> {
    counts: Counts,
    /// What is being read, outermost first: true for components.
    scopes: Vec<bool>,
    module: Module,
    structure: Structure<'a>,
}

impl<'a> Walk<'a> {
    fn payload(&mut self, bytes: &'a [u8], payload: Payload<'a>) -> Result<(), StructureError> {
        match payload {
            Payload::Version { encoding, .. } => self.enter(encoding)?,
            Payload::End(_) => drop(self.scopes.pop()),

            Payload::TypeSection(section) => {
                for group in section {
                    self.core_types(&group?, true)?;
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    self.counts.add(Bound::Imports, 1)?;
                    at_most(Bound::NameBytes, length(import.module.len().max(import.name.len())))?;
                    match import.ty {
                        TypeRef::Func(index) | TypeRef::FuncExact(index) => self.module.functions.push(index),
                        TypeRef::Global(_) => self.counts.add(Bound::Globals, 1)?,
                        TypeRef::Table(_) => self.counts.add(Bound::Tables, 1)?,
                        TypeRef::Memory(_) => self.counts.add(Bound::Memories, 1)?,
                        TypeRef::Tag(_) => self.counts.add(Bound::Tags, 1)?,
                    }
                }
            }
            Payload::FunctionSection(section) => {
                self.counts.add(Bound::Functions, section.count().into())?;
                for index in section {
                    self.module.functions.push(index?);
                }
            }
            Payload::TableSection(section) => self.counts.add(Bound::Tables, section.count().into())?,
            Payload::MemorySection(section) => self.counts.add(Bound::Memories, section.count().into())?,
            Payload::TagSection(section) => self.counts.add(Bound::Tags, section.count().into())?,
            Payload::GlobalSection(section) => self.counts.add(Bound::Globals, section.count().into())?,
            Payload::ExportSection(section) => {
                for export in section {
                    self.counts.add(Bound::Exports, 1)?;
                    at_most(Bound::NameBytes, length(export?.name.len()))?;
                }
            }
            Payload::ElementSection(section) => {
                for element in section {
                    self.counts.add(Bound::ElementSegments, 1)?;
                    self.counts.add(
                        Bound::Elements,
                        match element?.items {
                            wasmparser::ElementItems::Functions(items) => items.count().into(),
                            wasmparser::ElementItems::Expressions(_, items) => items.count().into(),
                        },
                    )?;
                }
            }
            Payload::DataCountSection { count, .. } => at_most(Bound::DataSegments, count.into())?,
            Payload::DataSection(section) => self.counts.add(Bound::DataSegments, section.count().into())?,
            Payload::CodeSectionEntry(body) => self.function(&body)?,
            Payload::CustomSection(section) => {
                self.counts.add(Bound::CustomSections, 1)?;
                at_most(Bound::NameBytes, length(section.name().len()))?;
                if section.name() == SECTION {
                    self.structure.descriptors.push(section.data());
                }
            }

            Payload::InstanceSection(section) => self.counts.add(Bound::Instances, section.count().into())?,
            Payload::ComponentInstanceSection(section) => self.counts.add(Bound::Instances, section.count().into())?,
            Payload::CoreTypeSection(section) => {
                for defined in section {
                    self.core_type(&defined?)?;
                }
            }
            Payload::ComponentAliasSection(section) => self.counts.add(Bound::Aliases, section.count().into())?,
            Payload::ComponentTypeSection(section) => {
                at_most(Bound::NestedTypes, nested_types(bytes, section.range()))?;
                for defined in section {
                    self.component_type(&defined?)?;
                }
            }
            Payload::ComponentCanonicalSection(section) => {
                for function in section {
                    self.counts.add(Bound::CanonicalFunctions, 1)?;
                    match function? {
                        CanonicalFunction::Lift { .. }
                        | CanonicalFunction::Lower { .. }
                        | CanonicalFunction::ResourceDrop { .. } => {}
                        _ => {
                            return Err(StructureError::Forbidden(
                                "uses a built-in function that features have no use for",
                            ));
                        }
                    }
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let name = import?.name.name;
                    self.counts.add(Bound::Imports, 1)?;
                    at_most(Bound::NameBytes, length(name.len()))?;
                    if self.scopes.len() == 1 {
                        self.structure.imports.push(name);
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let name = export?.name.name;
                    self.counts.add(Bound::Exports, 1)?;
                    at_most(Bound::NameBytes, length(name.len()))?;
                    if self.scopes.len() == 1 {
                        self.structure.exports.push(name);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn enter(&mut self, encoding: Encoding) -> Result<(), StructureError> {
        let is_component = encoding == Encoding::Component;
        self.scopes.push(is_component);
        if is_component {
            self.counts.add(Bound::Components, 1)?;
            at_most(Bound::ComponentDepth, length(self.scopes.iter().filter(|component| **component).count()))
        } else {
            self.module = Module::default();
            self.counts.add(Bound::Modules, 1)
        }
    }

    /// Types of a module, or with `defines` unset those that are only declared in a component.
    fn core_types(&mut self, group: &RecGroup, defines: bool) -> Result<(), StructureError> {
        for defined in group.types() {
            self.counts.add(Bound::CoreTypes, 1)?;
            let arity = match &defined.composite_type.inner {
                CompositeInnerType::Func(function) => {
                    Arity { parameters: length(function.params().len()), results: length(function.results().len()) }
                }
                _ => Arity::default(),
            };
            at_most(Bound::Parameters, arity.parameters)?;
            at_most(Bound::Results, arity.results)?;
            if defines {
                self.module.types.push(arity);
            }
        }
        Ok(())
    }

    fn core_type(&mut self, defined: &CoreType<'_>) -> Result<(), StructureError> {
        match defined {
            CoreType::Rec(group) => self.core_types(group, false),
            CoreType::Module(declared) => declared.iter().try_for_each(|one| match one {
                ModuleTypeDeclaration::Type(group) => self.core_types(group, false),
                _ => self.counts.add(Bound::CoreTypes, 1),
            }),
        }
    }

    fn component_type(&mut self, defined: &ComponentType<'_>) -> Result<(), StructureError> {
        use wasmparser::ComponentDefinedType as Defined;
        self.counts.add(Bound::ComponentTypes, 1)?;
        match defined {
            ComponentType::Defined(defined) => at_most(
                Bound::Fields,
                length(match defined {
                    Defined::Record(fields) => fields.len(),
                    Defined::Variant(cases) => cases.len(),
                    Defined::Tuple(types) => types.len(),
                    Defined::Flags(names) | Defined::Enum(names) => names.len(),
                    _ => 0,
                }),
            ),
            ComponentType::Func(function) => at_most(Bound::Fields, length(function.params.len())),
            ComponentType::Component(declared) => declared.iter().try_for_each(|one| match one {
                ComponentTypeDeclaration::CoreType(defined) => self.core_type(defined),
                ComponentTypeDeclaration::Type(defined) => self.component_type(defined),
                _ => self.counts.add(Bound::ComponentTypes, 1),
            }),
            ComponentType::Instance(declared) => declared.iter().try_for_each(|one| match one {
                InstanceTypeDeclaration::CoreType(defined) => self.core_type(defined),
                InstanceTypeDeclaration::Type(defined) => self.component_type(defined),
                _ => self.counts.add(Bound::ComponentTypes, 1),
            }),
            ComponentType::Resource { .. } => {
                Err(StructureError::Forbidden("defines a resource type; the host could not count its handles"))
            }
        }
    }

    fn function(&mut self, body: &FunctionBody<'_>) -> Result<(), StructureError> {
        let size = length(body.as_bytes().len());
        at_most(Bound::FunctionBytes, size)?;
        self.counts.add(Bound::FunctionSquares, size.saturating_mul(size))?;

        let mut locals = 0_u64;
        for run in body.get_locals_reader()? {
            locals = locals.saturating_add(run?.0.into());
            at_most(Bound::Locals, locals)?;
        }
        self.counts.add(Bound::AllLocals, locals)?;

        let mut values = 0_u64;
        // How many values a branch to each block that is open takes along, outermost first.
        let mut open: Vec<u64> = Vec::new();
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            let operator = operators.read()?;
            let crossing = match &operator {
                Operator::Block { blockty } | Operator::If { blockty } => {
                    let arity = self.module.block(*blockty);
                    open.push(arity.results);
                    arity.sum()
                }
                Operator::Loop { blockty } => {
                    let arity = self.module.block(*blockty);
                    open.push(arity.parameters);
                    arity.sum()
                }
                Operator::TryTable { try_table } => {
                    let arity = self.module.block(try_table.ty);
                    open.push(arity.results);
                    arity.sum().saturating_add(length(try_table.catches.len()))
                }
                Operator::End => open.pop().unwrap_or(0),
                Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => taken(&open, *relative_depth),
                Operator::BrTable { targets } => {
                    at_most(Bound::BranchTargets, targets.len().into())?;
                    let mut all = taken(&open, targets.default());
                    for target in targets.targets() {
                        all = all.saturating_add(taken(&open, target?)).saturating_add(1);
                    }
                    all
                }
                Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                    self.module.function_at(*function_index).sum()
                }
                Operator::CallIndirect { type_index, .. }
                | Operator::ReturnCallIndirect { type_index, .. }
                | Operator::CallRef { type_index }
                | Operator::ReturnCallRef { type_index } => self.module.type_at(*type_index).sum(),
                _ => 0,
            };
            at_most(Bound::BlockDepth, length(open.len()))?;
            values = values.saturating_add(crossing);
            at_most(Bound::EdgeValues, values)?;
        }
        self.counts.add(Bound::AllEdgeValues, values)
    }
}

/// What a branch to the block that stands `depth` blocks out takes along.
fn taken(open: &[u64], depth: u32) -> u64 {
    let depth = usize::try_from(depth).unwrap_or(usize::MAX);
    open.len().checked_sub(1).and_then(|last| last.checked_sub(depth)).map_or(0, |at| open[at])
}

/// How many types may stand in others in a section of types, at the most. Reading them recurses, so this comes before: a
/// type that stands in another one begins with these two bytes, which are rare anywhere else.
fn nested_types(bytes: &[u8], section: std::ops::Range<usize>) -> u64 {
    let section = bytes.get(section).unwrap_or_default();
    length(section.windows(2).filter(|pair| matches!(pair, [0x01, 0x41 | 0x42])).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_has_its_own_count() {
        for (place, bound) in Bound::ALL.into_iter().enumerate() {
            assert_eq!(bound as usize, place, "{bound:?}");
        }
    }

    #[test]
    fn a_branch_takes_along_what_its_target_wants() {
        assert_eq!((taken(&[7, 3], 0), taken(&[7, 3], 1), taken(&[7, 3], 2), taken(&[], 0)), (3, 7, 0, 0));
    }
}
